#include <algorithm>
#include <random>

#include "ops/kv_case.h"
#include "ops/kv_write/kv_write.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct KvWriteShape {
  int tokens;
  int kv_heads;
  int head_dim;
  int num_blocks;
  int block_size;
  KvFormats formats;
  bool has_padding = false;
  bool is_large = false;
};

// Returns a slot for each token, in random order; with has_padding every third token is padding.
std::vector<std::int32_t> slots_of(const KvWriteShape& shape) {
  std::vector<std::int32_t> slots(shape.num_blocks * shape.block_size);
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(i);
  std::shuffle(slots.begin(), slots.end(), std::mt19937(5));
  slots.resize(shape.tokens);
  for (int t = 0; shape.has_padding && t < shape.tokens; t += 3) slots[t] = -1;
  return slots;
}

Result<CaseRun> prepare(const KvWriteShape& shape, Exec& exec, std::span<const int> tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const std::int64_t part = std::int64_t{shape.kv_heads} * shape.head_dim;
  // Keys and values are parts of a joined product [tokens, q | k | v].
  const std::int64_t width = 3 * part;
  const auto values = take_rows(random_values(1, shape.tokens * width), width, tokens);
  const Tensor qkv = upload_activations(exec, values, {n, width});
  const auto part_of = [&](int i) {
    return qkv.slice(1, i * part, (i + 1) * part).split_last(shape.kv_heads, shape.head_dim);
  };
  const std::vector<std::int32_t> slots = slots_of(shape);
  std::vector<std::int32_t> own_slots;
  for (const int token : tokens) own_slots.push_back(slots[token]);
  auto host = std::make_shared<HostBatch>(write_batch(tokens, std::move(own_slots)));
  const Shape cache = {shape.num_blocks, shape.block_size, shape.kv_heads, shape.head_dim};
  PAGODA_ASSIGN_OR_RETURN(KvView view, allocate_kv_view(exec, shape.formats, cache));
  return CaseRun(
      [&exec, view, k = part_of(1), v = part_of(2), host, batch = upload(exec, *host)]() mutable {
        view = kv_write(exec, view, k, v, batch);
        return arrays_of(view);
      });
}

OpCase make_kv_write_case(const KvWriteShape& shape) {
  OpCase result{
      .op = "kv_write",
      .description = fmt::format("{} x {} x {} into {} x {} {}{}", shape.tokens, shape.kv_heads,
                                 shape.head_dim, shape.num_blocks, shape.block_size,
                                 name_of(shape.formats), shape.has_padding ? ", padding" : ""),
      .num_tokens = shape.tokens,
      .rows_are_tokens = false,
      .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) {
    return prepare(shape, exec, tokens);
  };
  const double entries = double{1} * shape.tokens * shape.kv_heads;
  result.bytes = entries * (8.0 * shape.head_dim +
                            static_cast<double>(kv_bytes(shape.formats, shape.head_dim)));
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> kv_write_cases() {
  std::vector<OpCase> cases;
  for (const KvFormats& formats : kKvCaseFormats) {
    for (const KvWriteShape& shape : {
             KvWriteShape{1, 1, 16, 4, 1, formats},
             KvWriteShape{9, 3, 64, 5, 16, formats},
             KvWriteShape{10, 2, 24, 7, 8, formats, true},
             KvWriteShape{6, 1, 128, 2, 300, formats},
             KvWriteShape{7, 2, 17, 3, 4, formats, true},
             KvWriteShape{512, 3, 64, 64, 16, formats, false, true},
         }) {
      if (fit(formats, shape.head_dim)) cases.push_back(make_kv_write_case(shape));
    }
  }
  return cases;
}

}  // namespace pagoda
