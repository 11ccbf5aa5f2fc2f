// The cpu attention: tiles of 32 keys at fixed absolute positions, an online softmax over them in
// order.
//
// A tile is loaded once for up to 16 queries of every head that reads it: keys transposed, so that
// a score is one chain over head_dim in a lane of its own, and values widened, so that an output is
// one chain over positions. Every query takes the same operations whoever shares the tile, and
// never touches a position that it may not see.
#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_exec.h"
#include "ops/attention/attention_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#undef PAGODA_UNROLL
#define PAGODA_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());
constexpr int kTileVectors = kTilePositions / kLanes;
// Rows of queries scored together: eight sums in registers.
constexpr int kRowsAtOnce = kTileVectors >= 8 ? 1 : 8 / kTileVectors;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

template <class DF>
HWY_INLINE hn::Vec<DF> LoadWide(DF d, const float* from) {
  return hn::LoadU(d, from);
}

template <class DF>
HWY_INLINE hn::Vec<DF> LoadWide(DF d, const bf16* from) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<DF>(), bits)));
}

template <class DF>
HWY_INLINE hn::Vec<DF> LoadWide(DF d, const f16* from) {
  const hn::Rebind<hwy::float16_t, DF> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

// Four keys' entries from `d` on as four columns of the transposed tile.
template <typename T>
HWY_INLINE void TransposeFour(const T* const* keys, std::int64_t d, float* transposed) {
  const hn::CappedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  const auto a = LoadWide(d4, keys[0] + d), b = LoadWide(d4, keys[1] + d);
  const auto c = LoadWide(d4, keys[2] + d), e = LoadWide(d4, keys[3] + d);
  const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d4, a, b));
  const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d4, a, b));
  const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d4, c, e));
  const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d4, c, e));
  const auto store = [&](auto v, int i) {
    hn::StoreU(hn::BitCast(d4, v), d4, transposed + (d + i) * kTilePositions);
  };
  store(hn::InterleaveLower(d2, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(d2, ab_low, ce_low), 1);
  store(hn::InterleaveLower(d2, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(d2, ab_high, ce_high), 3);
}

// One item's walk. Scratch is the calling thread's own.
template <typename T>
class Walk {
 public:
  Walk(const AttentionItem& item, float* scratch)
      : item_(item),
        rows_(item.num_queries * item.group),
        padded_dim_((item.head_dim + kLanes - 1) / kLanes * kLanes),
        keys_(scratch),
        values_(keys_ + item.head_dim * kTilePositions),
        queries_(values_ + kTilePositions * padded_dim_),
        sums_(queries_ + rows_ * item.head_dim),
        weights_(sums_ + rows_ * padded_dim_),
        largest_(weights_ + rows_ * kTilePositions),
        totals_(largest_ + rows_) {}

  void run() {
    start();
    const std::int64_t begin = first_visible(item_.first_position);
    const std::int64_t end = item_.first_position + item_.num_queries;
    for (std::int64_t tile = begin / kTilePositions; tile * kTilePositions < end; ++tile) {
      const std::int64_t at = tile * kTilePositions;
      load(at, std::max(begin, at), std::min(end, at + kTilePositions));
      attend(at);
    }
    finish();
  }

 private:
  std::int64_t first_visible(std::int64_t position) const {
    return item_.window > 0 ? std::max<std::int64_t>(position + 1 - item_.window, 0) : 0;
  }

  void start() {
    for (int r = 0; r < rows_; ++r) {
      const float* q =
          item_.q + r / item_.group * item_.token_stride + r % item_.group * item_.head_stride;
      std::copy_n(q, item_.head_dim, queries_ + r * item_.head_dim);
      // A sink is a key that weighs exp(sink) and has no value.
      largest_[r] = item_.sinks ? item_.sinks[r % item_.group] : kMinusInfinity;
      totals_[r] = item_.sinks ? 1.0f : 0.0f;
    }
    std::fill_n(sums_, rows_ * padded_dim_, 0.0f);
  }

  void finish() {
    for (int r = 0; r < rows_; ++r) {
      float* out =
          item_.out + r / item_.group * item_.out_token_stride + r % item_.group * item_.head_dim;
      const float* sums = sums_ + r * padded_dim_;
      for (std::int64_t d = 0; d < item_.head_dim; ++d) out[d] = sums[d] / totals_[r];
    }
  }

  // Positions [begin, end) of the tile at `at`; the others' columns are zero, and their values are
  // never read.
  void load(std::int64_t at, std::int64_t begin, std::int64_t end) {
    const T* keys[kTilePositions];
    const T* values[kTilePositions];
    HWY_ALIGN static constexpr T kZeros[4] = {};
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t slot =
          item_.blocks[p / item_.block_size] * item_.block_size + p % item_.block_size;
      keys[p - at] = reinterpret_cast<const T*>(item_.keys + slot * item_.slot_stride);
      values[p - at] = reinterpret_cast<const T*>(item_.values + slot * item_.slot_stride);
    }
    const std::int64_t whole = item_.head_dim / 4 * 4;
    for (int j = 0; j < kTilePositions; j += 4) {
      const bool all_exist = at + j >= begin && at + j + 4 <= end;
      for (std::int64_t d = 0; d < (all_exist ? whole : 0); d += 4) {
        TransposeFour(keys + j, d, keys_ + j);
      }
      for (std::int64_t d = all_exist ? whole : 0; d < item_.head_dim; ++d) {
        for (int i = j; i < j + 4; ++i) {
          const bool exists = at + i >= begin && at + i < end;
          keys_[d * kTilePositions + i] = to_float(exists ? keys[i][d] : kZeros[0]);
        }
      }
    }
    for (std::int64_t j = begin - at; j < end - at; ++j)
      widen(values[j], values_ + j * padded_dim_);
  }

  void widen(const T* from, float* to) const {
    std::int64_t d = 0;
    for (; d + kLanes <= item_.head_dim; d += kLanes)
      hn::StoreU(LoadWide(D(), from + d), D(), to + d);
    for (; d < item_.head_dim; ++d) to[d] = to_float(from[d]);
    for (; d < padded_dim_; ++d) to[d] = 0;
  }

  // The tile's positions that row r sees, from the tile's begin.
  struct Visible {
    int begin;
    int end;
  };
  Visible visible(int r, std::int64_t at) const {
    const std::int64_t position = item_.first_position + r / item_.group;
    return {static_cast<int>(std::max<std::int64_t>(first_visible(position) - at, 0)),
            static_cast<int>(std::min<std::int64_t>(position + 1 - at, kTilePositions))};
  }

  void attend(std::int64_t at) {
    const auto is_masked = [&](int r) {
      const Visible range = visible(r, at);
      return range.begin >= range.end;
    };
    // Rows that see anything of a tile follow one another: positions ascend.
    int first = 0, last = rows_;
    while (first < last && is_masked(first)) ++first;
    while (first < last && is_masked(last - 1)) --last;
    int r = first;
    for (; r + kRowsAtOnce <= last; r += kRowsAtOnce) score<kRowsAtOnce>(r);
    for (; r < last; ++r) score<1>(r);
    for (r = first; r < last; ++r) {
      const Visible range = visible(r, at);
      weigh(r, range);
      add_values(r, range);
    }
  }

  // weights_ of kRows rows: the products of query and keys.
  template <int kRows>
  HWY_INLINE void score(int row) {
    V sums[kRows][kTileVectors];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::Zero(D());
    }
    const float* q = queries_ + row * item_.head_dim;
    for (std::int64_t d = 0; d < item_.head_dim; ++d) {
      const float* keys = keys_ + d * kTilePositions;
      V key[kTileVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) key[v] = hn::LoadU(D(), keys + v * kLanes);
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(D(), q[r * item_.head_dim + d]);
        PAGODA_UNROLL
        for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::MulAdd(x, key[v], sums[r][v]);
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) {
        hn::StoreU(sums[r][v], D(), weights_ + (row + r) * kTilePositions + v * kLanes);
      }
    }
  }

  // Scores to softmax weights under the row's new maximum; what was summed under the old one is
  // scaled down.
  void weigh(int r, Visible range) {
    const D d;
    float* weights = weights_ + r * kTilePositions;
    V scores[kTileVectors];
    hn::Mask<D> seen[kTileVectors];
    V top = hn::Set(d, kMinusInfinity);
    PAGODA_UNROLL
    for (int v = 0; v < kTileVectors; ++v) {
      const V at = hn::Iota(d, static_cast<float>(v * kLanes));
      seen[v] = hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(range.begin))),
                        hn::Lt(at, hn::Set(d, static_cast<float>(range.end))));
      const V score = capped(hn::Mul(hn::LoadU(d, weights + v * kLanes), hn::Set(d, item_.scale)));
      scores[v] = hn::IfThenElse(seen[v], score, hn::Set(d, kMinusInfinity));
      top = hn::Max(top, scores[v]);
    }
    const float largest = std::max(largest_[r], hn::GetLane(hn::MaxOfLanes(d, top)));
    V total = hn::Zero(d);
    PAGODA_UNROLL
    for (int v = 0; v < kTileVectors; ++v) {
      const V weight = hn::Exp(d, hn::Sub(scores[v], hn::Set(d, largest)));
      const V seen_weight = hn::IfThenElseZero(seen[v], weight);
      hn::StoreU(seen_weight, d, weights + v * kLanes);
      total = hn::Add(total, seen_weight);
    }
    const float kept = std::exp(largest_[r] - largest);
    totals_[r] = totals_[r] * kept + hn::GetLane(hn::SumOfLanes(d, total));
    if (kept != 1.0f) {
      float* sums = sums_ + r * padded_dim_;
      for (std::int64_t i = 0; i < padded_dim_; i += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(d, sums + i), hn::Set(d, kept)), d, sums + i);
      }
    }
    largest_[r] = largest;
  }

  HWY_INLINE V capped(V score) const {
    if (item_.soft_cap == 0) return score;
    const V cap = hn::Set(D(), item_.soft_cap);
    return hn::Mul(cap, hn::Tanh(D(), hn::Div(score, cap)));
  }

  void add_values(int r, Visible range) {
    std::int64_t d = 0;
    for (; d + 4 * kLanes <= padded_dim_; d += 4 * kLanes) add_values<4>(r, range, d);
    for (; d < padded_dim_; d += kLanes) add_values<1>(r, range, d);
  }

  template <int kCount>
  HWY_INLINE void add_values(int r, Visible range, std::int64_t at) {
    const D d;
    float* to = sums_ + r * padded_dim_ + at;
    const float* weights = weights_ + r * kTilePositions;
    V sums[kCount];
    PAGODA_UNROLL
    for (int v = 0; v < kCount; ++v) sums[v] = hn::LoadU(d, to + v * kLanes);
    for (int j = range.begin; j < range.end; ++j) {
      const float* values = values_ + j * padded_dim_ + at;
      const V weight = hn::Set(d, weights[j]);
      PAGODA_UNROLL
      for (int v = 0; v < kCount; ++v) {
        sums[v] = hn::MulAdd(weight, hn::LoadU(d, values + v * kLanes), sums[v]);
      }
    }
    PAGODA_UNROLL
    for (int v = 0; v < kCount; ++v) hn::StoreU(sums[v], d, to + v * kLanes);
  }

  const AttentionItem& item_;
  const int rows_;  // queries times heads, the heads of a query side by side
  const std::int64_t padded_dim_;
  float* keys_;     // [head_dim, 32]
  float* values_;   // [32, padded_dim]
  float* queries_;  // [rows, head_dim]
  float* sums_;     // [rows, padded_dim]
  float* weights_;  // [rows, 32]
  float* largest_;  // [rows]
  float* totals_;   // [rows]
};

void Attend(const AttentionItem& item, float* scratch) {
  switch (item.dtype) {
    case DType::kFloat32:
      return Walk<float>(item, scratch).run();
    case DType::kBFloat16:
      return Walk<bf16>(item, scratch).run();
    case DType::kFloat16:
      return Walk<f16>(item, scratch).run();
    case DType::kInt32:
      PAGODA_CHECK(false, "[attention] a cache of int32");
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(Attend);

namespace {

// Slices of a step's items, each with every num_slices-th of them: about the same work in each.
constexpr std::int64_t kSlicesPerThread = 4;

std::int64_t scratch_floats(std::int64_t rows, std::int64_t head_dim) {
  const std::int64_t padded_dim = (head_dim + 15) / 16 * 16;
  return kTilePositions * (head_dim + padded_dim) +
         rows * (head_dim + padded_dim + kTilePositions + 2);
}

// A step's items in the order sequence, queries, kv head.
class Items {
 public:
  Items(const Tensor& q, const KvView& view, const StepBatch& batch, const AttentionArgs& args,
        const Tensor& out)
      : batch_(batch),
        query_start_(batch.query_start.data<std::int32_t>()),
        context_lens_(batch.context_lens.data<std::int32_t>()),
        kv_heads_(view.num_kv_heads()),
        sinks_(args.sinks.defined() ? args.sinks.data<float>() : nullptr),
        q_(q.data<float>()),
        out_(out.data<float>()) {
    const std::int64_t entry_bytes =
        view.head_dim() * static_cast<std::int64_t>(dtype_size(view.keys.dtype()));
    prototype_ = {.token_stride = q.stride(0),
                  .head_stride = q.stride(1),
                  .out_token_stride = q.extent(1) * q.extent(2),
                  .group = static_cast<int>(q.extent(1) / kv_heads_),
                  .keys = first_byte(view.keys),
                  .values = first_byte(view.values),
                  .slot_stride = kv_heads_ * entry_bytes,
                  .dtype = view.keys.dtype(),
                  .block_size = view.block_size(),
                  .head_dim = view.head_dim(),
                  .scale = args.scale,
                  .window = args.window,
                  .soft_cap = args.soft_cap};
    entry_bytes_ = entry_bytes;
  }

  int group() const { return prototype_.group; }

  std::int64_t count() const {
    std::int64_t total = 0;
    for (int s = 0; s < batch_.num_seqs; ++s) total += count_of(s);
    return total;
  }

  // Calls visit with every `step`th item from `first` on: neighbours cost about the same, and later
  // queries more.
  template <typename Visit>
  void for_each(std::int64_t first, std::int64_t step, Visit&& visit) const {
    std::int64_t begin = 0;  // of the sequence's items
    for (int s = 0; s < batch_.num_seqs; ++s) {
      const std::int64_t end = begin + count_of(s);
      for (; first < end; first += step) visit(item(s, first - begin));
      begin = end;
    }
  }

 private:
  static const std::byte* first_byte(const Tensor& cache) {
    return cache.buffer()->data() +
           cache.offset() * static_cast<std::int64_t>(dtype_size(cache.dtype()));
  }

  std::int64_t count_of(int seq) const {
    const std::int64_t queries = query_start_[seq + 1] - query_start_[seq];
    return (queries + kQueriesPerItem - 1) / kQueriesPerItem * kv_heads_;
  }

  AttentionItem item(int seq, std::int64_t index) const {
    const std::int64_t kv_head = index % kv_heads_;
    const std::int64_t first = index / kv_heads_ * kQueriesPerItem;  // query of the sequence's part
    const std::int64_t queries = query_start_[seq + 1] - query_start_[seq];
    const std::int64_t token = query_start_[seq] + first;
    const std::int64_t head = kv_head * prototype_.group;
    AttentionItem item = prototype_;
    item.q = q_ + token * item.token_stride + head * item.head_stride;
    item.out = out_ + token * item.out_token_stride + head * item.head_dim;
    item.num_queries = static_cast<int>(std::min<std::int64_t>(queries - first, kQueriesPerItem));
    item.first_position = context_lens_[seq] - queries + first;
    item.sinks = sinks_ ? sinks_ + head : nullptr;
    item.keys += kv_head * entry_bytes_;
    item.values += kv_head * entry_bytes_;
    item.blocks = batch_.block_tables.data<std::int32_t>() + seq * batch_.block_tables.extent(1);
    return item;
  }

  const StepBatch& batch_;
  const std::int32_t* query_start_;
  const std::int32_t* context_lens_;
  std::int64_t kv_heads_;
  std::int64_t entry_bytes_ = 0;
  const float* sinks_;
  const float* q_;
  float* out_;
  AttentionItem prototype_;
};

}  // namespace

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {q.extent(0), q.extent(1) * q.extent(2)});
  const Items items(q, view, batch, args, out);
  ThreadPool& pool = pool_of(exec);
  const std::int64_t floats = scratch_floats(kQueriesPerItem * items.group(), view.head_dim());
  const Tensor scratch = exec.allocate(DType::kFloat32, {pool.num_threads(), floats});
  const std::int64_t num_slices = std::min(items.count(), kSlicesPerThread * pool.num_threads());
  const auto attend = HWY_DYNAMIC_DISPATCH(Attend);
  pool.parallel_for(num_slices, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* own = scratch.data<float>() + thread * floats;
    for (std::int64_t slice = begin; slice < end; ++slice) {
      items.for_each(slice, num_slices, [&](const AttentionItem& item) { attend(item, own); });
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
