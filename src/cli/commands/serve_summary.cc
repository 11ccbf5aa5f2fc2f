#include "cli/commands/serve_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "backend/cpu/cpu_isa.h"
#include "cli/base/amounts.h"
#include "core/machine.h"

namespace pagoda {
namespace {

std::string model_line(const ServeSummary& summary) {
  const StoredWeights& weights = summary.model.weights;
  return fmt::format("model: {}, {} parameters, most in {}, {}; in the API {}",
                     summary.model.config.architecture, parameters_text(weights.num_parameters),
                     weights.format, size_text(weights.num_bytes),
                     fmt::join(summary.names, " or "));
}

// Returns the instruction set with its reason.
std::string isa_text() {
  const Result<CpuIsa> isa = choose_cpu_isa();
  if (!isa.ok()) return "unknown";
  const char* const asked = std::getenv("PAGODA_CPU_ISA");
  const bool is_asked = asked != nullptr && *asked != '\0';
  return fmt::format("{} ({})", cpu_isa_name(*isa),
                     is_asked ? "PAGODA_CPU_ISA" : "the best of this machine");
}

std::string device_line(const ServeSummary& summary) {
  const Backend backend = summary.model.engine->limits().backend;
  const char* reason = "as asked";
  if (summary.flags.device == "auto")
    reason = backend == Backend::kCpu ? "no GPU to compute on was found" : "a GPU was found";
  std::string line = fmt::format("device: {} ({})", backend_name(backend), reason);
  if (backend != Backend::kCpu) return line;
  const int asked = summary.flags.engine.num_threads;
  return line + fmt::format("; instruction set: {}; threads: {} ({})", isa_text(),
                            asked > 0 ? asked : default_num_threads(),
                            asked > 0 ? "as asked" : "the physical cores that are granted");
}

std::string context_line(const ServeSummary& summary) {
  const int served = summary.model.engine->limits().max_model_len;
  const int trained = summary.model.config.max_position_embeddings;
  const int asked = summary.flags.engine.max_model_len;
  if (served == trained) return fmt::format("context: {} tokens (the checkpoint's)", served);
  return fmt::format("context: {} tokens ({}; the checkpoint's: {})", served,
                     served == asked ? "as asked" : "what the KV cache holds", trained);
}

std::string pool_reason(const EngineOptions& options, bool holds_all_contexts) {
  if (options.num_kv_blocks > 0) return "blocks as asked";
  if (options.kv_cache_memory_bytes > 0) return "bytes as asked";
  if (holds_all_contexts) return "all contexts";
  return "half of the free memory, or 4 GiB; --kv-cache-memory-bytes changes it";
}

std::string kv_cache_line(const ServeSummary& summary) {
  const EngineLimits& limits = summary.model.engine->limits();
  const KvCacheInfo& cache = limits.kv_cache;
  const KvFormatFlags& asked = summary.flags.kv_formats;
  const bool is_asked = asked.dtype != "auto" || !asked.cache_type_k.empty();
  const int num_sequences = cache.num_sequences(limits.max_model_len);
  // A block has the layers of one group, which have equally many.
  const std::int64_t num_bytes = std::int64_t{cache.num_blocks} * cache.block_size *
                                 cache.bytes_per_token /
                                 static_cast<std::int64_t>(cache.group_windows.size());
  return fmt::format(
      "KV cache: {} ({}), {} bytes a token; {} blocks of {} tokens, {} ({}); room for {} sequences "
      "of {} tokens; prefix cache {}",
      kv_formats_name(cache.formats), is_asked ? "as asked" : "the device's", cache.bytes_per_token,
      cache.num_blocks, cache.block_size, size_text(num_bytes),
      pool_reason(summary.flags.engine, num_sequences >= limits.max_num_seqs), num_sequences,
      limits.max_model_len, cache.has_prefix_cache ? "on" : "off");
}

std::string keys_line(const ServeSummary& summary) {
  if (summary.num_keys == 0) return "keys: none, so that all who reach the address may ask";
  return fmt::format("keys: {}; each request brings one", summary.num_keys);
}

}  // namespace

std::vector<std::string> lines_of(const ServeSummary& summary) {
  return {model_line(summary),    device_line(summary), context_line(summary),
          kv_cache_line(summary), keys_line(summary),   "page: " + summary.page};
}

}  // namespace pagoda
