// Queries as the cpu attention's inner loops multiply them, compiled for each target: scaled, in
// units of the kind's number format, and interleaved for the largest blocks of rows.
#if defined(PAGODA_QUERY_PACKING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_QUERY_PACKING_INL_H
#undef PAGODA_QUERY_PACKING_INL_H
#else
#define PAGODA_QUERY_PACKING_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Dots>
class QueryPacking {
  using Unit = typename Dots::Unit;

 public:
  // Packs queries of num_dims dimensions, times a factor, into num_units units each, as many as a
  // key's padded words need.
  QueryPacking(std::int64_t num_dims, std::int64_t num_units, float factor)
      : num_dims_(num_dims), num_units_(num_units), factor_(factor) {}

  std::int64_t num_units() const { return num_units_; }

  // Packs into `to` [kRows, num_units], or [num_units, kRows] if score() takes them interleaved.
  template <int kRows>
  HWY_INLINE void pack(const float* const* q, Unit* to) const {
    if constexpr (kIsInterleaved<kRows> && !Dots::kMultipliesTiles) {
      interleave<kRows>(q, to);
    } else {
      for (int r = 0; r < kRows; ++r) copy(q[r], to + r * num_units_);
    }
  }

 private:
  HWY_INLINE Unit unit(const float* q, std::int64_t unit) const {
    const std::int64_t dim = unit * Dots::kDimsPerUnit;
    return Dots::unit(q + dim, num_dims_ - dim, factor_);
  }
  std::int64_t num_whole_units() const { return num_dims_ / Dots::kDimsPerUnit / 4 * 4; }

  HWY_INLINE void copy(const float* q, Unit* to) const {
    const hn::CappedTag<Unit, 4> d4;
    std::int64_t u = 0;
    for (; u < num_whole_units(); u += 4) {
      hn::StoreU(Dots::load_units(q + u * Dots::kDimsPerUnit, factor_), d4, to + u);
    }
    for (; u < num_units_; ++u) to[u] = unit(q, u);
  }

  // Computes to[u, r] = unit u of q[r]; four rows and units at a time.
  template <int kRows>
  HWY_INLINE void interleave(const float* const* q, Unit* to) const {
    const hn::CappedTag<Unit, 4> d4;
    const hn::Repartition<double, decltype(d4)> d2;
    constexpr int kWholeRows = kRows / 4 * 4;
    for (std::int64_t u = 0; u < num_whole_units(); u += 4) {
      for (int r = 0; r < kWholeRows; r += 4) {
        const auto load = [&](int i) {
          return Dots::load_units(q[r + i] + u * Dots::kDimsPerUnit, factor_);
        };
        const auto store = [&](auto v, int i) {
          hn::StoreU(hn::BitCast(d4, v), d4, to + (u + i) * kRows + r);
        };
        const auto a = load(0), b = load(1), c = load(2), e = load(3);
        const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d4, a, b));
        const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d4, a, b));
        const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d4, c, e));
        const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d4, c, e));
        store(hn::InterleaveLower(d2, ab_low, ce_low), 0);
        store(hn::InterleaveUpper(d2, ab_low, ce_low), 1);
        store(hn::InterleaveLower(d2, ab_high, ce_high), 2);
        store(hn::InterleaveUpper(d2, ab_high, ce_high), 3);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (std::int64_t u = r < kWholeRows ? num_whole_units() : 0; u < num_units_; ++u) {
        to[u * kRows + r] = unit(q[r], u);
      }
    }
  }

  const std::int64_t num_dims_;
  const std::int64_t num_units_;
  const float factor_;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
