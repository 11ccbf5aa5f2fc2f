// The dispatches of the products of a mixture's rows on Metal, for expert_linear and
// expert_gated_linear.
#pragma once

#include "backend/gpu/gpu_op.h"
#include "ops/expert_linear/expert_linear.h"
#include "ops/linear/product_gpu.h"

namespace pagoda::gpu {

// Returns the dispatch of a segment's product with the rows of all blocks. The caller sets the
// kernel's buffers.
GpuDispatch expert_product_dispatch(const Exec& exec, const ProductKernels& kernels,
                                    const SegmentProduct& product, const Tensor& x,
                                    const Routing& routing);

// Returns the products of x, one row for each of the routing's rows, with the experts' parts side by
// side: [rows, weight.rows()].
Tensor expert_rows(Exec& exec, const Tensor& x, const ExpertWeight& weight, const Routing& routing,
                   const Tensor& bias);

}  // namespace pagoda::gpu
