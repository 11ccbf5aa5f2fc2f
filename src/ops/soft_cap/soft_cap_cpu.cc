#include "ops/soft_cap/soft_cap.h"

#include <algorithm>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/soft_cap/soft_cap_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Caps `count` numbers. The bits of a result do not depend on the number's place.
void cap_numbers(const float* x, std::int64_t count, float cap, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, cap);
  const auto capped = [&](auto v)
                          HWY_ATTR { return hn::Mul(limit, hn::Tanh(d, hn::Div(v, limit))); };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(capped(hn::LoadU(d, x + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  std::copy(x + i, x + count, rest);
  hn::Store(capped(hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (count - i), out + i);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(cap_numbers);

namespace {

constexpr std::int64_t kNumbersTogether = 4096;  // about four microseconds, what a fork costs

}  // namespace

Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args) {
  const std::int64_t count = x.num_elements();
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const auto cap_numbers = HWY_DYNAMIC_DISPATCH(cap_numbers);
  const std::int64_t parts = (count + kNumbersTogether - 1) / kNumbersTogether;
  pool_of(exec).parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t first = begin * kNumbersTogether;
    const std::int64_t last = std::min(end * kNumbersTogether, count);
    cap_numbers(x.data<float>() + first, last - first, args.cap, out.data<float>() + first);
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
