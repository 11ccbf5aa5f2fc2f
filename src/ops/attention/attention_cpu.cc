#include "ops/attention/attention.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cpu/cpu_exec.h"
#include "ops/attention/attention_items.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/attention_walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

void attend_item(const AttentionItem& item, float* scratch) {
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

void merge_ranges(const AttentionItem& item, float* scratch) {
  Walk<float>(item, scratch).merge_partials();
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(attend_item);
HWY_EXPORT(merge_ranges);

namespace {

// Slices of a step's items, each with every num_slices-th of them: about the same work in each.
constexpr std::int64_t kSlicesPerThread = 4;

// What a Walk of that many rows takes.
std::int64_t walk_floats(std::int64_t rows, std::int64_t head_dim) {
  const std::int64_t padded_dim = (head_dim + 15) / 16 * 16;
  return head_dim * (kTilePositions + 1) + kTilePositions * padded_dim +
         rows * (head_dim + kTilePositions + 2 * (padded_dim + 2));
}

}  // namespace

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {q.extent(0), q.extent(1) * q.extent(2)});
  ThreadPool& pool = pool_of(exec);
  AttentionItems items(q, view, batch, args, out);
  const Tensor partials = exec.allocate(DType::kFloat32, {items.num_partial_floats()});
  items.set_partials(partials.data<float>());
  const std::int64_t floats = walk_floats(kQueriesPerItem * items.group(), view.head_dim());
  const Tensor scratch = exec.allocate(DType::kFloat32, {pool.num_threads(), floats});
  const std::int64_t num_slices =
      std::min(items.num_items(), kSlicesPerThread * pool.num_threads());
  const auto attend = HWY_DYNAMIC_DISPATCH(attend_item);
  pool.parallel_for(num_slices, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* own = scratch.data<float>() + thread * floats;
    for (std::int64_t slice = begin; slice < end; ++slice) {
      items.for_each(slice, num_slices, [&](const AttentionItem& item) { attend(item, own); });
    }
  });
  const auto merge_ranges = HWY_DYNAMIC_DISPATCH(merge_ranges);
  items.for_each_cut([&](const AttentionItem& item) { merge_ranges(item, scratch.data<float>()); });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
