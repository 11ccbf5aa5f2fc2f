#include "ops/rope_kv_write/rope_kv_write.h"

#include <algorithm>
#include <random>

#include "ops/kv_case.h"
#include "ops/op_cases.h"
#include "ops/rope/rope_cases.h"

namespace pagoda {
namespace {

struct JoinedShape {
  int tokens;
  int heads;
  int kv_heads;
  int head_dim;
  KvFormats formats;
  RopeStyle style = RopeStyle::kHalves;
  bool is_normed = false;
  bool is_scattered = false;  // over more blocks than tokens would fill; every third is padding
  bool is_large = false;
  bool has_offset = false;
  int rotary_dim = 0;  // 0: head_dim
  bool has_query_angles = false;
  bool has_v_norm = false;
  bool keys_are_values = false;

  std::int64_t width() const {
    return std::int64_t{heads + (keys_are_values ? 1 : 2) * kv_heads} * head_dim;
  }
};

constexpr int kBlockSize = 8;  // of a cache that entries are scattered over

// Returns a slot for each token. If the shape is scattered, slots are in random order, and -1 is
// padding. Else slot i is that of tokens[i], and so is row i of the cache.
std::vector<std::int32_t> slots_of(const JoinedShape& shape, std::span<const int> tokens) {
  std::vector<std::int32_t> all(shape.is_scattered ? 2 * shape.tokens : tokens.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  if (!shape.is_scattered) return all;
  std::shuffle(all.begin(), all.end(), std::mt19937(5));
  std::vector<std::int32_t> slots;
  for (const int token : tokens) slots.push_back(token % 3 == 2 ? -1 : all[token]);
  return slots;
}

Shape cache_of(const JoinedShape& shape, std::int64_t num_tokens) {
  if (!shape.is_scattered) return {num_tokens, 1, shape.kv_heads, shape.head_dim};
  const int num_blocks = (2 * shape.tokens + kBlockSize - 1) / kBlockSize;
  return {num_blocks, kBlockSize, shape.kv_heads, shape.head_dim};
}

Result<CaseRun> prepare(const JoinedShape& shape, Exec& exec, std::span<const int> tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const auto values =
      take_rows(random_values(1, shape.tokens * shape.width()), shape.width(), tokens);
  const auto norm = [&](bool is_there, std::uint32_t seed) {
    if (!is_there) return Tensor();
    return exec.upload<float>(random_values(seed, shape.head_dim), {shape.head_dim});
  };
  RopeKvWriteArgs args = {.num_heads = shape.heads,
                          .norm = {.eps = 1e-5f},
                          .rope = {.style = shape.style},
                          .v_norm = norm(shape.has_v_norm, 6),
                          .keys_are_values = shape.keys_are_values};
  const int rotary_dim = shape.rotary_dim == 0 ? shape.head_dim : shape.rotary_dim;
  if (shape.has_query_angles) {
    args.query_angles = case_angles(exec, tokens, 0, rotary_dim,
                                    {.factor = 1.5f, .growth = 0.5f, .growth_positions = 2});
  }
  if (shape.has_offset) {
    args.key_offset = exec.upload<float>(random_values(4, shape.kv_heads * shape.head_dim),
                                         {shape.kv_heads, shape.head_dim});
  }
  const auto host = std::make_shared<HostBatch>(write_batch(tokens, slots_of(shape, tokens)));
  PAGODA_ASSIGN_OR_RETURN(KvView view, allocate_kv_view(exec, shape.formats, cache_of(shape, n)));
  return CaseRun([&exec, args, view, host, batch = upload(exec, *host),
                  joined = upload_activations(exec, values, {n, shape.width()}),
                  q_norm = norm(shape.is_normed, 2), k_norm = norm(shape.is_normed, 3),
                  angles = case_angles(exec, tokens, 0, rotary_dim),
                  is_scattered = shape.is_scattered]() mutable {
    RopeKvWriteResult result =
        rope_kv_write(exec, joined, q_norm, k_norm, angles, view, batch, args);
    view = result.view;
    // The arrays of a cache with scattered entries do not depend on the order of the tokens.
    std::vector<Tensor> outputs = arrays_of(view);
    // Queries do, so they are outputs only if the rows of all outputs are tokens.
    if (!is_scattered) outputs.insert(outputs.begin(), result.q);
    return outputs;
  });
}

// Returns how far outputs may differ. If bodies differ in the last bit of a key, it may be rounded
// to the next number of the cache's format. With two codes in a byte, one step of the high code is
// 16 of 255.
float tolerance_of(KvFormat keys) {
  switch (keys) {
    case KvFormat::kFloat32:
      return 1e-5f;
    case KvFormat::kFloat16:
      return 0x1p-10f;
    case KvFormat::kBFloat16:
    case KvFormat::kInt8:
      return 0.01f;
    case KvFormat::kInt4:
      return 0.08f;
  }
  return 0;
}

OpCase make_rope_kv_write_case(const JoinedShape& shape) {
  OpCase result{.op = "rope_kv_write",
                .description = fmt::format(
                    "{} x ({} + 2 x {}) x {} into {}, {}{}{}{}{}{}{}{}", shape.tokens, shape.heads,
                    shape.kv_heads, shape.head_dim, name_of(shape.formats),
                    shape.style == RopeStyle::kHalves ? "halves" : "adjacent",
                    shape.is_normed ? ", normed" : "", shape.is_scattered ? ", scattered" : "",
                    shape.has_offset ? ", less an offset" : "",
                    shape.rotary_dim == 0 ? "" : ", a part rotated",
                    shape.has_query_angles ? ", queries otherwise" : "",
                    shape.has_v_norm ? ", values normed" : "",
                    shape.keys_are_values ? ", keys as values" : ""),
                .num_tokens = shape.tokens,
                .rows_are_tokens = !shape.is_scattered};
  result.tolerance.cpu = result.tolerance.mlx = tolerance_of(shape.formats.keys);
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) {
    return prepare(shape, exec, tokens);
  };
  const double entries = 2.0 * shape.tokens * shape.kv_heads * shape.head_dim;
  const double queries = double{1} * shape.tokens * shape.heads * shape.head_dim;
  result.bytes = 4.0 * shape.tokens * static_cast<double>(shape.width()) + 4 * queries +
                 double{1} * shape.tokens * shape.kv_heads *
                     static_cast<double>(kv_bytes(shape.formats, shape.head_dim));
  result.flops = (shape.is_normed ? 7 : 3) * (queries + entries / 2);
  result.is_large = shape.is_large;
  return result;
}

// Adds cases of heads that are rotated in part, normed values, keys as values, and keys minus an
// offset.
void add_variants(const KvFormats& formats, std::vector<OpCase>& cases) {
  for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
    for (const auto& [head_dim, rotary_dim] : {std::pair(16, 6), {128, 96}, {64, 64}}) {
      cases.push_back(make_rope_kv_write_case({.tokens = 7,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .head_dim = head_dim,
                                               .formats = formats,
                                               .style = style,
                                               .is_normed = head_dim == 128,
                                               .rotary_dim = rotary_dim,
                                               .has_query_angles = head_dim == 64}));
    }
  }
  for (const bool keys_are_values : {false, true}) {
    for (const int head_dim : {16, 18, 256}) {
      cases.push_back(make_rope_kv_write_case({.tokens = 7,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .head_dim = head_dim,
                                               .formats = formats,
                                               .is_normed = true,
                                               .has_v_norm = true,
                                               .keys_are_values = keys_are_values}));
    }
  }
  if (is_quantized(formats.keys)) {
    for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
      cases.push_back(make_rope_kv_write_case({.tokens = 7,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .head_dim = 64,
                                               .formats = formats,
                                               .style = style,
                                               .has_offset = true}));
    }
  }
}

}  // namespace

std::vector<OpCase> rope_kv_write_cases() {
  std::vector<OpCase> cases;
  for (const KvFormats& formats : kKvCaseFormats) {
    for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
      for (const bool is_normed : {false, true}) {
        for (const bool is_scattered : {false, true}) {
          cases.push_back(
              make_rope_kv_write_case({5, 2, 1, 16, formats, style, is_normed, is_scattered}));
          cases.push_back(
              make_rope_kv_write_case({4, 3, 3, 18, formats, style, is_normed, is_scattered}));
          cases.push_back(
              make_rope_kv_write_case({9, 9, 3, 64, formats, style, is_normed, is_scattered}));
          cases.push_back(
              make_rope_kv_write_case({7, 4, 2, 128, formats, style, is_normed, is_scattered}));
        }
        cases.push_back(make_rope_kv_write_case({3, 2, 1, 80, formats, style, is_normed}));
        cases.push_back(make_rope_kv_write_case({3, 2, 1, 256, formats, style, is_normed}));
      }
    }
    add_variants(formats, cases);
    cases.push_back(make_rope_kv_write_case(
        {.tokens = 1, .heads = 1, .kv_heads = 1, .head_dim = 64, .formats = formats}));
    cases.push_back(make_rope_kv_write_case({.tokens = 512,
                                             .heads = 16,
                                             .kv_heads = 8,
                                             .head_dim = 128,
                                             .formats = formats,
                                             .is_normed = true,
                                             .is_large = true}));
  }
  return cases;
}

}  // namespace pagoda
