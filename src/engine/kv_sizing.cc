#include "engine/kv_sizing.h"

#include <algorithm>

#include "kv/cache_groups.h"

namespace pagoda {

namespace {

constexpr int kDefaultMaxNumSeqs = 64;
constexpr std::int64_t kDefaultPoolBytes = std::int64_t{4} << 30;  // vLLM's default on CPUs
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;         // block ids and slots are int32
constexpr KvFormats kSkipped = {KvFormat::kBFloat16, KvFormat::kBFloat16};

Status check_formats(const LayerKvLayout& layer) {
  for (const KvFormat format : {layer.formats.keys, layer.formats.values}) {
    if (fits(format, layer.head_dim)) continue;
    return invalid_argument(
        "[kv cache] {}: expected an even head_dim, two codes a byte, got {}; int8 takes any",
        kv_format_name(format), layer.head_dim);
  }
  return ok_status();
}

KvFormats formats_of(const EngineOptions& options, Backend backend) {
  const KvFormat automatic = traits_of(backend).kv_cache_format;
  return options.kv_cache_formats.value_or(KvFormats{automatic, automatic});
}

CacheGroups groups_of(const KvLayout& layout) {
  return CacheGroups(layout.block_size, layout.group_windows);
}

std::int64_t pool_bytes(const EngineOptions& options, const KvSizing& sizing,
                        std::int64_t available_bytes) {
  if (options.kv_cache_memory_bytes > 0) return options.kv_cache_memory_bytes;
  const std::int64_t context_bytes =
      groups_of(sizing.layout).most_held(sizing.max_model_len) * sizing.layout.bytes_per_block();
  const std::int64_t wanted = context_bytes * sizing.max_num_seqs;
  return std::min({wanted, available_bytes / 2, std::max(kDefaultPoolBytes, context_bytes)});
}

// Returns the longest context, of up to max_model_len tokens, that num_blocks blocks hold.
int longest_context(const CacheGroups& groups, int num_blocks, int max_model_len) {
  int held = 0, too_long = max_model_len + 1;
  while (too_long - held > 1) {
    const int middle = held + (too_long - held) / 2;
    (groups.most_held(middle) <= num_blocks ? held : too_long) = middle;
  }
  return held;
}

}  // namespace

Result<KvLayout> lay_out_kv_cache(const EngineOptions& options, const ModelConfig& config,
                                  Backend backend) {
  const KvFormats formats = formats_of(options, backend);
  const std::vector<int>& skipped = options.kv_cache_skipped_layers.layers;
  for (const int layer : skipped) {
    if (layer < 0 || layer >= config.num_layers()) {
      return invalid_argument("[kv cache] layers to skip: expected 0 to {}, got {}",
                              config.num_layers() - 1, layer);
    }
    if (config.layers[layer].attention().kv_source >= 0) {
      return invalid_argument("[kv cache] layers to skip: layer {} reads the entries of layer {}",
                              layer, config.layers[layer].attention().kv_source);
    }
  }
  KvLayout layout = {.block_size = options.block_size, .layers = {}};
  for (int i = 0; i < config.num_layers(); ++i) {
    const AttentionConfig& layer = config.layers[i].attention();
    const bool is_skipped = (options.kv_cache_skipped_layers.windowed && layer.window > 0) ||
                            std::find(skipped.begin(), skipped.end(), i) != skipped.end();
    if (layer.kv_source >= 0) {
      layout.layers.push_back(layout.layers[layer.kv_source]);
      layout.layers.back().source = layer.kv_source;
      continue;
    }
    layout.layers.push_back({.formats = is_skipped && is_quantized(formats) ? kSkipped : formats,
                             .num_kv_heads = layer.num_kv_heads,
                             .head_dim = layer.head_dim,
                             .window = layer.window});
    PAGODA_RETURN_IF_ERROR(check_formats(layout.layers.back()));
  }
  return layout;
}

Result<KvSizing> size_kv_cache(const EngineOptions& options, const ModelConfig& config,
                               Backend backend, std::int64_t available_bytes) {
  if (options.kv_cache_layout == KvCacheLayout::kContiguous && options.num_kv_blocks > 0) {
    return invalid_argument(
        "[kv cache] num_kv_blocks is of the paged layout: a contiguous one has a block a sequence");
  }
  if (options.max_model_len == 1) {
    return invalid_argument(
        "[kv cache] max_model_len: expected 2 tokens at least, a prompt's and an answer's, got 1");
  }
  KvSizing sizing = {.formats = formats_of(options, backend)};
  PAGODA_ASSIGN_OR_RETURN(sizing.layout, lay_out_kv_cache(options, config, backend));
  sizing.max_model_len = config.max_position_embeddings;
  if (options.max_model_len > 0)
    sizing.max_model_len = std::min(sizing.max_model_len, options.max_model_len);
  sizing.max_num_seqs = options.max_num_seqs > 0 ? options.max_num_seqs : kDefaultMaxNumSeqs;
  const bool is_contiguous = options.kv_cache_layout == KvCacheLayout::kContiguous;
  if (!is_contiguous) deal_into_groups(sizing.layout, sizing.max_model_len);
  const std::int64_t bytes = pool_bytes(options, sizing, available_bytes);
  if (is_contiguous) {
    // One block per sequence. Short memory lowers the number of sequences before their length.
    const std::int64_t tokens = bytes / sizing.layout.bytes_per_token();
    sizing.max_model_len = static_cast<int>(std::min<std::int64_t>(sizing.max_model_len, tokens));
    if (sizing.max_model_len > 0) {
      sizing.max_num_seqs = static_cast<int>(
          std::min<std::int64_t>(sizing.max_num_seqs, tokens / sizing.max_model_len));
    }
    sizing.layout.block_size = sizing.max_model_len;
    sizing.num_blocks = sizing.max_num_seqs;
  } else {
    int slots = 1;  // slots per block
    for (const KvTable& table : sizing.layout.tables)
      slots = std::max(slots, table.num_parts * sizing.layout.block_size);
    const std::int64_t by_memory = bytes / sizing.layout.bytes_per_block();
    const std::int64_t blocks = options.num_kv_blocks > 0 ? options.num_kv_blocks : by_memory;
    sizing.num_blocks = static_cast<int>(std::min(blocks, kMaxBlocks / slots));
    sizing.max_model_len =
        longest_context(groups_of(sizing.layout), sizing.num_blocks, sizing.max_model_len);
  }
  const std::int64_t block_bytes =
      sizing.layout.bytes_per_block() / std::max(sizing.layout.block_size, 1) * options.block_size;
  if (sizing.num_blocks < 1 || sizing.max_model_len < 2) {
    return resource_exhausted(
        "[kv cache] expected room for a block of {} tokens ({} bytes) and for a context of 2, got "
        "{} bytes",
        options.block_size, block_bytes, bytes);
  }
  return sizing;
}

}  // namespace pagoda
