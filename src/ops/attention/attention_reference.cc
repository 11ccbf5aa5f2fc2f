#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/attention.h"

namespace pagoda::reference {
namespace {

// The scratch memory of one query at a time, taken from the step's arena: a step allocates nothing.
struct Scratch {
  double* scores;  // [max_context_len]
  double* sums;    // [head_dim]
};

// One query of one head: the softmax in two passes, in double.
struct Query {
  const float* q;              // [head_dim]
  const std::int32_t* blocks;  // of the query's sequence
  std::int64_t position;
  std::int64_t head;
  std::int64_t kv_head;
};

template <typename T>
const T* entry(const Tensor& cache, const Query& query, std::int64_t position) {
  const std::int64_t block_size = cache.extent(1), kv_heads = cache.extent(2);
  const std::int64_t slot =
      query.blocks[position / block_size] * block_size + position % block_size;
  return cache.data<T>() + (slot * kv_heads + query.kv_head) * cache.extent(3);
}

template <typename T>
double score(const KvView& view, const Query& query, std::int64_t position,
             const AttentionArgs& args) {
  const T* key = entry<T>(view.keys, query, position);
  double sum = 0;
  for (std::int64_t d = 0; d < view.head_dim(); ++d) sum += double{query.q[d]} * to_float(key[d]);
  sum *= args.scale;
  return args.soft_cap > 0 ? args.soft_cap * std::tanh(sum / args.soft_cap) : sum;
}

template <typename T>
void attend(const KvView& view, const Query& query, const AttentionArgs& args,
            const Scratch& scratch, float* out) {
  const std::int64_t end = query.position + 1;
  const std::int64_t begin = args.window > 0 ? std::max<std::int64_t>(end - args.window, 0) : 0;
  double largest = -std::numeric_limits<double>::infinity();
  if (args.sinks.defined()) largest = args.sinks.data<float>()[query.head];
  for (std::int64_t p = begin; p < end; ++p) {
    scratch.scores[p - begin] = score<T>(view, query, p, args);
    largest = std::max(largest, scratch.scores[p - begin]);
  }
  double total = 0;
  if (args.sinks.defined()) total = std::exp(args.sinks.data<float>()[query.head] - largest);
  std::fill_n(scratch.sums, view.head_dim(), 0.0);
  for (std::int64_t p = begin; p < end; ++p) {
    const double weight = std::exp(scratch.scores[p - begin] - largest);
    const T* value = entry<T>(view.values, query, p);
    total += weight;
    for (std::int64_t d = 0; d < view.head_dim(); ++d) {
      scratch.sums[d] += weight * to_float(value[d]);
    }
  }
  for (std::int64_t d = 0; d < view.head_dim(); ++d) {
    out[d] = static_cast<float>(scratch.sums[d] / total);
  }
}

template <typename T>
Tensor attend_all(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                  const AttentionArgs& args) {
  const std::int64_t heads = q.extent(1), head_dim = q.extent(2);
  const std::int64_t max_blocks = batch.block_tables.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, {q.extent(0), heads * head_dim});
  // A double takes the place of two floats.
  const Tensor memory = exec.allocate(DType::kFloat32, {batch.max_context_len + head_dim, 2});
  auto* const doubles = reinterpret_cast<double*>(memory.data<float>());
  const Scratch scratch{.scores = doubles, .sums = doubles + batch.max_context_len};
  const std::int32_t* starts = batch.query_start.data<std::int32_t>();
  for (int s = 0; s < batch.num_seqs; ++s) {
    const std::int64_t first_position =
        batch.context_lens.data<std::int32_t>()[s] - (starts[s + 1] - starts[s]);
    for (std::int64_t t = starts[s]; t < starts[s + 1]; ++t) {
      if (batch.slot_mapping.data<std::int32_t>()[t] < 0) continue;  // padding
      for (std::int64_t h = 0; h < heads; ++h) {
        attend<T>(view,
                  {.q = q.data<float>() + t * q.stride(0) + h * q.stride(1),
                   .blocks = batch.block_tables.data<std::int32_t>() + s * max_blocks,
                   .position = first_position + t - starts[s],
                   .head = h,
                   .kv_head = h / (heads / view.num_kv_heads())},
                  args, scratch, out.data<float>() + (t * heads + h) * head_dim);
      }
    }
  }
  return out;
}

}  // namespace

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  switch (view.keys.dtype()) {
    case DType::kFloat32:
      return attend_all<float>(exec, q, view, batch, args);
    case DType::kBFloat16:
      return attend_all<bf16>(exec, q, view, batch, args);
    case DType::kFloat16:
      return attend_all<f16>(exec, q, view, batch, args);
    case DType::kInt32:
      break;
  }
  PAGODA_CHECK(false, "[attention] a cache of int32");
  return {};
}

}  // namespace pagoda::reference
