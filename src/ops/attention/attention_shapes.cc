// The shapes of attention's case list.
#include <algorithm>

#include "ops/attention/attention_cases.h"
#include "ops/kv_case.h"

namespace pagoda {
namespace {

std::vector<AttentionShape> small_shapes() {
  std::vector<AttentionShape> shapes;
  for (const KvFormats& formats : kKvCaseFormats) {
    shapes.push_back({.seqs = {{1, 1}}, .formats = formats});  // one key
    shapes.push_back({.seqs = {{45, 1}, {3, 1}, {70, 9}},
                      .heads = 6,
                      .kv_heads = 2,
                      .head_dim = 24,
                      .formats = formats});
  }
  const std::vector<AttentionSeq> ragged = {{33, 1}, {100, 1}, {1, 1}, {40, 40}, {75, 11}};
  for (const int block_size : {1, 8, 16, 128}) {
    shapes.push_back(
        {.seqs = ragged, .heads = 3, .kv_heads = 1, .head_dim = 64, .block_size = block_size});
  }
  shapes.push_back({.seqs = ragged, .heads = 4, .kv_heads = 4, .head_dim = 128});
  shapes.push_back({.seqs = ragged, .heads = 2, .kv_heads = 1, .head_dim = 18});
  shapes.push_back({.seqs = {{700, 1}, {530, 20}}, .heads = 2, .head_dim = 16});
  // All heads of a wide cache are read together. Of six heads, three are a work item.
  shapes.push_back(
      {.seqs = {{900, 1}, {40, 1}, {300, 1}}, .heads = 16, .kv_heads = 8, .head_dim = 128});
  shapes.push_back({.seqs = {{600, 1}}, .heads = 12, .kv_heads = 6, .head_dim = 128});
  // A sequence that is split into ranges, with all of its queries together.
  shapes.push_back({.seqs = {{1100, 26}}, .heads = 8, .kv_heads = 4, .head_dim = 16});
  // Windows of a single position, smaller than a tile, and smaller than a chunk.
  for (const int window : {1, 5, 32, 50}) {
    shapes.push_back({.seqs = ragged, .heads = 2, .block_size = 8, .window = window});
  }
  shapes.push_back({.seqs = {{700, 1}, {600, 12}}, .heads = 2, .window = 300});
  shapes.push_back({.seqs = ragged, .heads = 2, .soft_cap = 30, .magnitude = 8});
  shapes.push_back({.seqs = ragged, .heads = 2, .has_sinks = true});
  for (const KvFormats& formats :
       {both(KvFormat::kBFloat16), KvFormats{KvFormat::kInt8, KvFormat::kInt4},
        KvFormats{KvFormat::kFloat32, KvFormat::kInt4}}) {
    shapes.push_back({.seqs = ragged,
                      .heads = 6,
                      .kv_heads = 2,
                      .head_dim = 64,
                      .formats = formats,
                      .window = 20,
                      .soft_cap = 5,
                      .has_sinks = true});
  }
  shapes.push_back({.seqs = ragged, .heads = 2, .equal_keys = true});
  shapes.push_back({.seqs = ragged, .heads = 2, .magnitude = 100});  // one key has all the weight
  return shapes;
}

// Returns shapes with the head sizes of models, at contexts across the border of two partitions of
// 512 keys, some with consecutive blocks.
std::vector<AttentionShape> head_dim_shapes() {
  std::vector<AttentionShape> shapes;
  for (const int head_dim : {80, 96, 112, 192, 256, 512}) {
    shapes.push_back({.seqs = {{530, 1}, {60, 3}, {40, 17}},
                      .heads = 2,
                      .head_dim = head_dim,
                      .block_size = head_dim % 3 == 0 ? 8 : 32,
                      .layout_seed = head_dim % 5 == 0 ? 0u : 1u});
  }
  for (const KvFormat format :
       {KvFormat::kFloat32, KvFormat::kFloat16, KvFormat::kInt8, KvFormat::kInt4}) {
    for (const int head_dim : {64, 128, 256}) {
      shapes.push_back({.seqs = {{520, 9}, {33, 1}},
                        .heads = 3,
                        .head_dim = head_dim,
                        .block_size = 32,
                        .formats = both(format)});
    }
  }
  for (const int block_size : {8, 16, 32}) {
    for (const std::uint32_t layout_seed : {0u, 1u}) {
      shapes.push_back({.seqs = {{600, 1}, {45, 30}},
                        .heads = 2,
                        .block_size = block_size,
                        .window = block_size * 4,
                        .layout_seed = layout_seed});
    }
  }
  return shapes;
}

// Returns the shapes of the grid that have no option (bfloat16) or all options (float16).
// attention_grid_test.cc takes the whole grid.
std::vector<AttentionShape> some_of_the_grid() {
  std::vector<AttentionShape> shapes = attention_grid();
  std::erase_if(shapes, [](const AttentionShape& shape) {
    const bool has_all = shape.window > 0 && shape.soft_cap > 0 && shape.has_sinks;
    const bool has_none = shape.window == 0 && shape.soft_cap == 0 && !shape.has_sinks;
    return shape.formats.keys == KvFormat::kFloat16 ? !has_all : !has_none;
  });
  return shapes;
}

// Returns shapes with the heads of SmolLM2-135M and of Qwen3-0.6B. They are decodes of long
// contexts, with blocks in order or shuffled, decodes of short contexts, prompts, and late chunks
// of long prompts.
std::vector<AttentionShape> large_shapes() {
  const AttentionShape smol{.heads = 9, .kv_heads = 3, .head_dim = 64, .is_large = true};
  const AttentionShape qwen{.heads = 16, .kv_heads = 8, .head_dim = 128, .is_large = true};
  std::vector<AttentionShape> shapes;
  AttentionShape many = smol;
  for (int i = 0; i < 32; ++i) many.seqs.push_back({128 + 2 * i, 1});
  many.layers = 30;
  for (const KvFormat format : {KvFormat::kBFloat16, KvFormat::kInt8, KvFormat::kInt4}) {
    for (AttentionShape shape : {smol, qwen}) {
      shape.formats = both(format);
      for (const std::uint32_t layout_seed : {0u, 1u}) {
        shape.layout_seed = layout_seed;
        shape.seqs = {{8000, 1}};
        shapes.push_back(shape);
      }
      for (const AttentionSeq& seq :
           {AttentionSeq{128, 1}, AttentionSeq{512, 512}, AttentionSeq{8000, 512}}) {
        shape.seqs = {seq};
        shapes.push_back(shape);
      }
    }
    many.formats = both(format);
    shapes.push_back(many);
  }
  AttentionShape wide = qwen;
  for (int i = 0; i < 8; ++i) wide.seqs.push_back({160 + 2 * i, 1});
  wide.layers = 28;
  shapes.push_back(wide);
  // Short chunks of a long prompt, alone and beside four decodes.
  AttentionShape chunk = smol;
  chunk.layers = 30;
  for (const int query_len : {4, 8, 16, 32}) {
    chunk.seqs = {{2000, query_len}};
    shapes.push_back(chunk);
  }
  for (const AttentionSeq& seq : {AttentionSeq{1000, 16}, AttentionSeq{4000, 8}}) {
    chunk.seqs = {{1150, 1}, {1200, 1}, {1250, 1}, {1300, 1}, seq};
    shapes.push_back(chunk);
  }
  return shapes;
}

}  // namespace

std::vector<AttentionShape> attention_grid() {
  std::vector<AttentionShape> shapes;
  for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {8, 2}, {5, 1}}) {
    for (const int window : {0, 128}) {
      for (const float soft_cap : {0.0f, 50.0f}) {
        for (const bool has_sinks : {false, true}) {
          for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kBFloat16}) {
            shapes.push_back({.seqs = {{1328, 1}, {18, 5}, {463, 129}},
                              .heads = heads,
                              .kv_heads = kv_heads,
                              .head_dim = 128,
                              .formats = both(format),
                              .window = window,
                              .soft_cap = soft_cap,
                              .has_sinks = has_sinks});
          }
        }
      }
    }
  }
  return shapes;
}

std::vector<AttentionShape> attention_shapes() {
  std::vector<AttentionShape> shapes = small_shapes();
  for (const AttentionShape& shape : head_dim_shapes()) shapes.push_back(shape);
  for (const AttentionShape& shape : some_of_the_grid()) shapes.push_back(shape);
  for (const AttentionShape& shape : large_shapes()) shapes.push_back(shape);
  return shapes;
}

}  // namespace pagoda
