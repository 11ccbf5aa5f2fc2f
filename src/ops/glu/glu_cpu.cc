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

Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  Tensor out = exec.allocate(DType::kFloat32, {tokens, dim});
  const float* from = gate_up.data<float>();
  float* to = out.data<float>();
  const auto glu_row = HWY_DYNAMIC_DISPATCH(glu_row);
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* gate = from + t * 2 * dim;
      glu_row(gate, gate + dim, dim, args.activation, to + t * dim);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
