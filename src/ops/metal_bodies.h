// The bodies of the kernels for Apple GPUs, each from the file of its name:
// attention/attention.metal.
#pragma once

namespace pagoda::mlx {

extern const char* const kApplyPenaltiesMetal;
extern const char* const kAttentionMetal;
extern const char* const kLinearMetal;

}  // namespace pagoda::mlx
