// The cpu attention has three of the AttentionPaths: kFloats, for keys and values of one float
// format, kCodes, and kDecoded.
#pragma once

#include <cstdint>

#include "ops/attention/attention.h"

namespace pagoda::cpu {

// The most dimensions whose products of a code and a 16-bit number are summed exactly in 32 bits:
// 127 * 32767 * 512 < 2^31.
inline constexpr std::int64_t kMostCodedDims = 512;

// Computes attention() on a path, with or without AVX-VNNI, which changes no bit. kDecoded takes
// any quantised or mixed cache. Tests compare the paths with attention().
Tensor attention_on(AttentionPath path, bool has_avx_vnni, Exec& exec, const Tensor& q,
                    const KvView& view, const StepBatch& batch, const AttentionArgs& args);

}  // namespace pagoda::cpu
