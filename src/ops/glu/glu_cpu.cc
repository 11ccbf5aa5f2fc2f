#include "ops/glu/glu.h"

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/glu/glu_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/glu/glu_row-inl.h"

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(glu_row);

Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args) {
  const std::int64_t tokens = gate.extent(0), dim = gate.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, gate.shape());
  const float* gates = gate.data<float>();
  const float* ups = up.data<float>();
  float* to = out.data<float>();
  const auto glu_row = HWY_DYNAMIC_DISPATCH(glu_row);
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      glu_row(gates + t * gate.stride(0), ups + t * up.stride(0), dim, args, to + t * dim);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
