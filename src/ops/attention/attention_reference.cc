#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "ops/attention/attention.h"
#include "quant/kv_rotation.h"

namespace pagoda::reference {
namespace {

// Scratch memory for one query at a time. It is in the step's arena, so a step allocates no memory.
struct Scratch {
  double* scores;  // [max_context_len]
  double* sums;    // [head_dim]
  double* query;   // [head_dim], rotated if keys are codes
  double* entry;   // [head_dim]
};

// One query of one head. Its softmax is computed in two passes, in double.
struct Query {
  const float* q;              // [head_dim]
  const std::int32_t* blocks;  // blocks of the query's sequence
  std::int64_t position;
  std::int64_t head;
  std::int64_t kv_head;
};

// An entry's numbers as they are stored: codes are not rotated back.
class Entry {
 public:
  Entry(const KvEntries& entries, const Query& query, std::int64_t position)
      : format_(entries.format), head_dim_(entries.head_dim()) {
    const Tensor& elements = entries.elements;
    const std::int64_t block_size = elements.extent(1), kv_heads = elements.extent(2);
    const std::int64_t block = query.blocks[position / block_size];
    const std::int64_t offset = position % block_size;
    const std::int64_t slot = block * block_size + offset;
    bytes_ = elements.first_byte() + (slot * kv_heads + query.kv_head) * entries.entry_bytes();
    if (!is_quantized(format_)) return;
    const std::int64_t num_scales = entries.scales.extent(2);
    const bf16* scales = entries.scales.data<bf16>() +
                         (block * kv_heads + query.kv_head) * num_scales * block_size + offset;
    scale_ = to_float(scales[0]);
    if (format_ == KvFormat::kInt4) minimum_ = to_float(scales[block_size]);
  }

  // Writes head_dim values.
  void read(double* values) const {
    switch (format_) {
      case KvFormat::kFloat32:
        return read(values, [&](std::int64_t d) { return at<float>(d); });
      case KvFormat::kBFloat16:
        return read(values, [&](std::int64_t d) { return to_float(at<bf16>(d)); });
      case KvFormat::kFloat16:
        return read(values, [&](std::int64_t d) { return to_float(at<f16>(d)); });
      case KvFormat::kInt8:
        return read(values, [&](std::int64_t d) { return scale_ * at<std::int8_t>(d); });
      case KvFormat::kInt4:
        return read(values, [&, half = head_dim_ / 2](std::int64_t d) {
          const int code = d < half ? at<std::uint8_t>(d) & 15 : at<std::uint8_t>(d - half) >> 4;
          return scale_ * code + minimum_;
        });
    }
  }

 private:
  template <typename T>
  T at(std::int64_t d) const {
    return reinterpret_cast<const T*>(bytes_)[d];
  }
  template <typename Value>
  void read(double* values, const Value& value) const {
    for (std::int64_t d = 0; d < head_dim_; ++d) values[d] = value(d);
  }

  KvFormat format_;
  std::int64_t head_dim_;
  const std::byte* bytes_;
  double scale_ = 0;
  double minimum_ = 0;
};

// Returns the factor by which two rotations multiply; 1 if entries are not rotated.
double rotation_of(const KvEntries& entries) {
  if (!is_quantized(entries.format)) return 1;
  return static_cast<double>(kv_rotation_width(entries.head_dim()));
}

double score(const KvView& view, const Query& query, std::int64_t position,
             const AttentionArgs& args, const Scratch& scratch) {
  Entry(view.keys, query, position).read(scratch.entry);
  double sum = 0;
  for (std::int64_t d = 0; d < view.head_dim(); ++d) sum += scratch.query[d] * scratch.entry[d];
  sum *= args.scale / rotation_of(view.keys);
  return args.soft_cap > 0 ? args.soft_cap * std::tanh(sum / args.soft_cap) : sum;
}

void attend(const KvView& view, const Query& query, const AttentionArgs& args,
            const Scratch& scratch, float* out) {
  const std::int64_t head_dim = view.head_dim();
  const auto size = static_cast<std::size_t>(head_dim);
  const std::int64_t end = query.position + 1;
  const std::int64_t begin = args.window > 0 ? std::max<std::int64_t>(end - args.window, 0) : 0;
  std::copy_n(query.q, head_dim, scratch.query);
  if (is_quantized(view.keys.format)) rotate_kv_entry(std::span(scratch.query, size));
  double largest = -std::numeric_limits<double>::infinity();
  if (args.sinks.defined()) largest = args.sinks.data<float>()[query.head];
  for (std::int64_t p = begin; p < end; ++p) {
    scratch.scores[p - begin] = score(view, query, p, args, scratch);
    largest = std::max(largest, scratch.scores[p - begin]);
  }
  double total = 0;
  if (args.sinks.defined()) total = std::exp(args.sinks.data<float>()[query.head] - largest);
  std::fill_n(scratch.sums, head_dim, 0.0);
  for (std::int64_t p = begin; p < end; ++p) {
    const double weight = std::exp(scratch.scores[p - begin] - largest);
    Entry(view.values, query, p).read(scratch.entry);
    total += weight;
    for (std::int64_t d = 0; d < head_dim; ++d) scratch.sums[d] += weight * scratch.entry[d];
  }
  if (is_quantized(view.values.format)) rotate_kv_entry(std::span(scratch.sums, size));
  total *= rotation_of(view.values);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    out[d] = static_cast<float>(scratch.sums[d] / total);
  }
}

}  // namespace

AttentionPath attention_path(const KvFormats& formats, std::int64_t /*head_dim*/) {
  return is_quantized(formats) ? AttentionPath::kAsRead : AttentionPath::kFloats;
}

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  const std::int64_t heads = q.extent(1), head_dim = q.extent(2);
  const std::int64_t max_blocks = batch.block_tables.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, {q.extent(0), heads * head_dim});
  // A double takes the place of two floats.
  const Tensor memory = exec.allocate(DType::kFloat32, {batch.max_context_len + 3 * head_dim, 2});
  auto* const doubles = reinterpret_cast<double*>(memory.data<float>());
  const Scratch scratch{.scores = doubles,
                        .sums = doubles + batch.max_context_len,
                        .query = doubles + batch.max_context_len + head_dim,
                        .entry = doubles + batch.max_context_len + 2 * head_dim};
  const std::int32_t* starts = batch.query_start.data<std::int32_t>();
  for (int s = 0; s < batch.num_seqs; ++s) {
    const std::int64_t first_position =
        batch.context_lens.data<std::int32_t>()[s] - (starts[s + 1] - starts[s]);
    for (std::int64_t t = starts[s]; t < starts[s + 1]; ++t) {
      if (batch.slot_mapping.data<std::int32_t>()[t] < 0) continue;  // padding
      for (std::int64_t h = 0; h < heads; ++h) {
        attend(view,
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

}  // namespace pagoda::reference
