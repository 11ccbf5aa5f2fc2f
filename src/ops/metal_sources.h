// The ops' .metal files, each beside its op, with what they include in place (cmake/metal.cmake).
#pragma once

#include "backend/mlx/metal_launch.h"

namespace pagoda::mlx {

extern const MetalSource kAddRmsNormMetal;
extern const MetalSource kApplyLogitBiasMetal;
extern const MetalSource kApplyPenaltiesMetal;
extern const MetalSource kApplyTokenMaskMetal;
extern const MetalSource kArgmaxMetal;
extern const MetalSource kAttentionMetal;
extern const MetalSource kCountTokensMetal;
extern const MetalSource kGatedLinearMetal;
extern const MetalSource kGatherRowsMetal;
extern const MetalSource kGluMetal;
extern const MetalSource kKvCopyBlocksMetal;
extern const MetalSource kKvWriteMetal;
extern const MetalSource kLinearMetal;
extern const MetalSource kLogProbsMetal;
extern const MetalSource kResolveTokensMetal;
extern const MetalSource kRmsNormMetal;
extern const MetalSource kRmsNormRopeMetal;
extern const MetalSource kRopeKvWriteMetal;
extern const MetalSource kRopeMetal;
extern const MetalSource kSampleMetal;
extern const MetalSource kSelectRowsMetal;
extern const MetalSource kSoftCapMetal;
extern const MetalSource kTopKTopPMinPMetal;

}  // namespace pagoda::mlx
