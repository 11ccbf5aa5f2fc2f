#include "ops/attention/attention_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "ops/kv_case.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The blocks of each sequence: shuffled, with some between them that no sequence owns.
struct CacheLayout {
  int num_blocks = 0;
  int max_blocks = 0;                             // the most blocks of a sequence
  std::vector<std::vector<std::int32_t>> tables;  // a block table per sequence
};

CacheLayout make_layout(const AttentionShape& shape) {
  CacheLayout layout;
  std::vector<int> blocks_of;
  for (const AttentionSeq& seq : shape.seqs) {
    blocks_of.push_back((seq.context_len + shape.block_size - 1) / shape.block_size);
    layout.max_blocks = std::max(layout.max_blocks, blocks_of.back());
    layout.num_blocks += blocks_of.back();
  }
  layout.num_blocks += 2;
  std::vector<std::int32_t> ids(layout.num_blocks);
  std::iota(ids.begin(), ids.end(), 0);
  if (shape.layout_seed != 0) {
    std::shuffle(ids.begin(), ids.end(), std::mt19937(shape.layout_seed));
  }
  auto next = ids.begin();
  for (const int count : blocks_of) {
    layout.tables.emplace_back(next, next + count);
    next += count;
  }
  return layout;
}

// Returns [blocks, block_size, kv_heads, head_dim] with every sequence's entries at their slots.
std::vector<float> scatter(const AttentionShape& shape, const CacheLayout& layout,
                           std::span<const float> entries) {
  const std::int64_t width = std::int64_t{shape.kv_heads} * shape.head_dim;
  std::vector<float> cache(layout.num_blocks * shape.block_size * width, kNan);
  auto from = entries.begin();
  for (std::size_t s = 0; s < shape.seqs.size(); ++s) {
    for (int p = 0; p < shape.seqs[s].context_len; ++p, from += width) {
      const std::int64_t slot =
          std::int64_t{layout.tables[s][p / shape.block_size]} * shape.block_size +
          p % shape.block_size;
      std::copy_n(from, width, cache.begin() + slot * width);
    }
  }
  return cache;
}

struct Place {
  int seq;
  int position;
};

std::vector<Place> token_places(const AttentionShape& shape) {
  std::vector<Place> places;
  for (int s = 0; s < static_cast<int>(shape.seqs.size()); ++s) {
    const AttentionSeq& seq = shape.seqs[s];
    for (int p = seq.context_len - seq.query_len; p < seq.context_len; ++p) {
      places.push_back({s, p});
    }
  }
  return places;
}

bool are_consecutive(std::span<const std::int32_t> blocks) {
  return std::adjacent_find(blocks.begin(), blocks.end(), [](std::int32_t a, std::int32_t b) {
           return b != a + 1;
         }) == blocks.end();
}

// Makes a batch of the listed tokens. Consecutive tokens of a sequence are one part; any other
// token starts a new part.
std::shared_ptr<HostBatch> make_batch(const AttentionShape& shape, const CacheLayout& layout,
                                      std::span<const int> tokens) {
  const std::vector<Place> places = token_places(shape);
  auto host = std::make_shared<HostBatch>();
  host->max_blocks = layout.max_blocks;
  Place last{-1, -1};
  for (const int token : tokens) {
    const Place place = places[token];
    const std::vector<std::int32_t>& table = layout.tables[place.seq];
    if (place.seq != last.seq || place.position != last.position + 1) {
      host->query_start.push_back(host->num_tokens());
      host->context_lens.push_back(0);
      host->first_slots.push_back(are_consecutive(table) ? table[0] * shape.block_size : -1);
      host->block_tables.insert(host->block_tables.end(), table.begin(), table.end());
      host->block_tables.resize(host->context_lens.size() * layout.max_blocks);
    }
    host->context_lens.back() = place.position + 1;
    host->token_ids.push_back(0);
    host->positions.push_back(place.position);
    host->slot_mapping.push_back(table[place.position / shape.block_size] * shape.block_size +
                                 place.position % shape.block_size);
    last = place;
  }
  host->query_start.push_back(host->num_tokens());
  while (host->num_decodes < host->num_seqs() &&
         host->query_start[host->num_decodes + 1] == host->num_decodes + 1) {
    ++host->num_decodes;
  }
  return host;
}

Result<CaseRun> prepare(const AttentionShape& shape, Exec& exec, std::span<const int> tokens) {
  const CacheLayout layout = make_layout(shape);
  const AttentionInputs inputs = attention_inputs(shape);
  const Shape cache = {layout.num_blocks, shape.block_size, shape.kv_heads, shape.head_dim};
  std::vector<KvView> views;
  for (int layer = 0; layer < shape.layers; ++layer) {
    views.push_back({.keys = upload_kv_entries(exec, shape.formats.keys,
                                               scatter(shape, layout, inputs.keys), cache),
                     .values = upload_kv_entries(exec, shape.formats.values,
                                                 scatter(shape, layout, inputs.values), cache)});
  }
  const std::int64_t width = std::int64_t{shape.heads} * shape.head_dim;
  const Tensor q = upload_activations(exec, take_rows(inputs.queries, width, tokens),
                                      {static_cast<std::int64_t>(tokens.size()), width})
                       .split_last(shape.heads, shape.head_dim);
  AttentionArgs args{
      .scale = attention_scale(shape), .window = shape.window, .soft_cap = shape.soft_cap};
  if (shape.has_sinks) args.sinks = exec.upload<float>(inputs.sinks, {shape.heads});
  auto host = make_batch(shape, layout, tokens);
  return CaseRun([&exec, q, views, host, batch = upload(exec, *host), args, attend = shape.attend] {
    std::vector<Tensor> outputs;
    for (const KvView& view : views) outputs.push_back(attend(exec, q, view, batch, args));
    return outputs;
  });
}

std::string describe(const AttentionShape& shape) {
  std::string seqs;
  if (shape.seqs.size() > 8) {
    seqs = fmt::format("{} seqs to {}/{}", shape.seqs.size(), shape.seqs.back().query_len,
                       shape.seqs.back().context_len);
  }
  for (std::size_t s = 0; s < shape.seqs.size() && shape.seqs.size() <= 8; ++s) {
    const AttentionSeq& seq = shape.seqs[s];
    seqs += fmt::format("{}{}/{}", seqs.empty() ? "" : " ", seq.query_len, seq.context_len);
  }
  std::string text =
      fmt::format("{}, {} heads on {}, dim {}, blocks of {} {}", seqs, shape.heads, shape.kv_heads,
                  shape.head_dim, shape.block_size, name_of(shape.formats));
  if (shape.window > 0) text += fmt::format(", window {}", shape.window);
  if (shape.soft_cap > 0) text += fmt::format(", soft cap {}", shape.soft_cap);
  if (shape.has_sinks) text += ", sinks";
  if (shape.magnitude != 1) text += fmt::format(", magnitude {}", shape.magnitude);
  if (shape.equal_keys) text += ", equal keys";
  if (shape.ends_in_nan) text += ", NaN at the end";
  if (shape.layout_seed == 0) text += ", blocks in order";
  if (shape.layers > 1) text += fmt::format(", {} layers", shape.layers);
  return text;
}

}  // namespace

AttentionInputs attention_inputs(const AttentionShape& shape) {
  std::int64_t tokens = 0, entries = 0;
  for (const AttentionSeq& seq : shape.seqs) {
    tokens += seq.query_len;
    entries += seq.context_len;
  }
  const std::int64_t width = std::int64_t{shape.kv_heads} * shape.head_dim;
  AttentionInputs inputs{
      .queries = random_values(1, tokens * shape.heads * shape.head_dim, 2 * shape.magnitude),
      .keys = random_values(2, entries * width, 2 * shape.magnitude),
      .values = random_values(3, entries * width),
      .sinks = {}};
  if (shape.equal_keys) std::fill(inputs.keys.begin(), inputs.keys.end(), 0.5f);
  if (shape.ends_in_nan) {
    std::int64_t end = 0;
    for (const AttentionSeq& seq : shape.seqs) {
      end += seq.context_len * width;
      std::fill_n(inputs.keys.begin() + end - width, width, kNan);
      std::fill_n(inputs.values.begin() + end - width, width, kNan);
    }
  }
  if (shape.has_sinks) inputs.sinks = random_values(4, shape.heads, 3);
  return inputs;
}

float attention_scale(const AttentionShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
}

OpCase make_attention_case(const AttentionShape& shape) {
  OpCase result{.op = "attention", .description = describe(shape), .num_tokens = 0};
  double pairs = 0, entries = 0;  // pairs of a query and a key it sees; keys read
  for (const AttentionSeq& seq : shape.seqs) {
    result.num_tokens += seq.query_len;
    for (int p = seq.context_len - seq.query_len; p < seq.context_len; ++p) {
      pairs += shape.window > 0 ? std::min(p + 1, shape.window) : p + 1;
    }
    entries += seq.context_len;
  }
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) {
    return prepare(shape, exec, tokens);
  };
  result.flops = 4 * pairs * shape.heads * shape.head_dim * shape.layers;
  const auto entry_bytes = static_cast<double>(kv_bytes(shape.formats, shape.head_dim));
  result.bytes = shape.layers * (entries * shape.kv_heads * entry_bytes +
                                 8.0 * result.num_tokens * shape.heads * shape.head_dim);
  // With bfloat16 keys and values, queries and weights may be rounded to bfloat16 too. With codes
  // they are integers of 16 bits. An error of a score is a relative error of its weight, and
  // float32 rounds scores of 1e4 by a thousandth.
  const bool is_bf16 = shape.formats == both(KvFormat::kBFloat16);
  const bool has_codes = is_quantized(shape.formats.keys) || is_quantized(shape.formats.values);
  if (shape.magnitude > 1) {
    result.tolerance = {.cpu = is_bf16 ? 0.03f : 1e-3f, .cuda = 0.06f};
  } else if (is_bf16) {
    result.tolerance.cpu = 0.006f;
  } else if (has_codes) {
    result.tolerance.cpu = 1e-3f;
  }
  result.tolerance.mlx = result.tolerance.cpu;
  result.is_large = shape.is_large;
  return result;
}

std::vector<float> run_attention(Exec& exec, const AttentionShape& shape,
                                 std::span<const int> tokens) {
  return run_case(exec, make_attention_case(shape), tokens).value()[0];
}

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const AttentionShape& shape : attention_shapes())
    cases.push_back(make_attention_case(shape));
  return cases;
}

}  // namespace pagoda
