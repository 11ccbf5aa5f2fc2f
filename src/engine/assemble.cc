#include "engine/assemble.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "core/log.h"
#include "engine/cache_scope.h"
#include "engine/kv_sizing.h"
#include "engine/model_runner.h"
#include "engine/prepare_kernels.h"
#include "ops/linear/linear.h"

namespace pagoda {
namespace {

// Share of the start-up time that loading the weights takes. The rest is for building kernels.
constexpr double kWeightsShare = 0.9;

// Returns a callback that maps its share of [0, 1] to [from, to] and reports that to `whole`.
LoadProgress part_of(const LoadProgress& whole, double from, double to) {
  return [&whole, from, to](double share) {
    if (whole) whole(from + share * (to - from));
  };
}

void log_shortened_context(const EngineOptions& options, const ModelConfig& config,
                           const KvSizing& sizing) {
  const int trained = config.max_position_embeddings;
  if (options.max_model_len > trained) {
    log_warning("max_model_len: {} asked for, the checkpoint was trained for {}",
                options.max_model_len, trained);
  }
  const int wanted = options.max_model_len > 0 ? std::min(options.max_model_len, trained) : trained;
  if (sizing.max_model_len < wanted) {
    log_warning(
        "max_model_len: {} instead of {} tokens, which is what the KV cache of {} blocks holds",
        sizing.max_model_len, wanted, sizing.num_blocks);
  }
}

KvCacheInfo info_of(const EngineOptions& options, const KvSizing& sizing) {
  const KvLayout& layout = sizing.layout;
  KvCacheInfo info = {.formats = sizing.formats,
                      .skipped_layers = {},
                      .block_size = layout.block_size,
                      .num_blocks = sizing.num_blocks,
                      .group_windows = layout.group_windows,
                      .bytes_per_token = layout.bytes_per_token(),
                      .has_prefix_cache = options.enable_prefix_caching};
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    if (layout.layers[i].source < 0 && !(layout.layers[i].formats == sizing.formats))
      info.skipped_layers.push_back(static_cast<int>(i));
  }
  return info;
}

int tokens_per_step(const EngineOptions& options, const Exec& exec, int max_num_seqs) {
  constexpr std::int64_t kMostOfThreads = 2048;
  if (options.max_num_batched_tokens > 0) return options.max_num_batched_tokens;
  const BackendTraits& traits = traits_of(exec.backend());
  const auto of_threads = static_cast<int>(std::min(
      std::int64_t{traits.batched_tokens_per_thread} * exec.num_threads(), kMostOfThreads));
  return std::max({traits.max_num_batched_tokens, of_threads, max_num_seqs});
}

Result<std::unique_ptr<Exec>> make_exec_of(const EngineOptions& options) {
  const ExecOptions exec_options = {.backend = options.backend.value_or(Backend::kCpu),
                                    .num_threads = options.num_threads,
                                    .int8_activations = options.int8_activations};
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<Exec> exec,
                          options.backend ? make_exec(exec_options) : make_best_exec(exec_options));
  if (options.op_profile && !traits_of(exec->backend()).is_native) {
    return unsupported("[profile] {}: per-op times need a native backend, --device cpu",
                       backend_name(exec->backend()));
  }
  exec->set_profile(options.op_profile);
  return exec;
}

// The parts of the tier below the prefix cache; null if there is no tier.
struct TierParts {
  std::unique_ptr<BlockFiles> files;
  std::optional<BlockMemory> memory;
};

// Adds the prefix cache, and the tier below it if `tier` has parts. REQUIRES: `parts` has all that
// steps need.
Status add_prefix_cache(const Checkpoint& checkpoint, const ModelConfig& config,
                        const EngineOptions& options, const KvLayout& layout,
                        const SchedulerOptions& scheduler, TierParts tier, EngineParts& parts) {
  std::string model = config.architecture;
  if (tier.files) {
    PAGODA_ASSIGN_OR_RETURN(
        const Sha256Digest scope,
        cache_scope(checkpoint, layout, {*parts.exec, *parts.runner, *parts.pool, *tier.memory},
                    scheduler, config.vocab_size));
    parts.tier = make_tier(options, layout, scope, *std::move(tier.memory), std::move(tier.files));
    model = to_hex(scope);
  }
  parts.prefix_cache = std::make_unique<PrefixCache>(
      *parts.pool, CacheGroups(layout.block_size, layout.group_windows), model, parts.tier.get(),
      options.cache_events.get());
  parts.cache_events = options.cache_events;
  return ok_status();
}

// Returns the config for the context length that the options ask for, even if memory holds less:
// what a model computes must not depend on memory.
ModelConfig served_config(const ModelConfig& trained, const EngineOptions& options) {
  ModelConfig config = trained;
  set_served_context(config, options.max_model_len > 0
                                 ? std::min(options.max_model_len, trained.max_position_embeddings)
                                 : trained.max_position_embeddings);
  return config;
}

}  // namespace

std::unique_ptr<StepRunner> make_model_runner(RunnerParts parts) {
  return std::make_unique<ModelRunner>(*parts.exec, std::move(parts.decoder), std::move(parts.kv),
                                       std::move(parts.options), parts.host_reads_blocks);
}

Result<EngineParts> assemble(const Checkpoint& checkpoint, const ModelConfig& config,
                             const EngineOptions& options, const LoadProgress& on_progress,
                             const RunnerFactory& make_runner) {
  EngineParts parts;
  const ModelConfig served = served_config(config, options);
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<BlockFiles> block_files, open_tier_files(options));
  PAGODA_ASSIGN_OR_RETURN(parts.exec, make_exec_of(options));
  const Backend backend = parts.exec->backend();
  PAGODA_ASSIGN_OR_RETURN(const KvLayout layout, lay_out_kv_cache(options, served, backend));
  PAGODA_ASSIGN_OR_RETURN(Decoder decoder, Decoder::load(*parts.exec, checkpoint, served, layout,
                                                         part_of(on_progress, 0, kWeightsShare)));
  choose_prefetch(*parts.exec);
  PAGODA_ASSIGN_OR_RETURN(KvSizing sizing,
                          size_kv_cache(options, served, backend, parts.exec->available_bytes()));
  log_shortened_context(options, config, sizing);
  PAGODA_ASSIGN_OR_RETURN(KvStore kv,
                          KvStore::create(*parts.exec, sizing.layout, sizing.num_blocks));
  PAGODA_RETURN_IF_ERROR(
      prepare_kernels(*parts.exec, decoder, kv, part_of(on_progress, kWeightsShare, 1)));
  std::optional<BlockMemory> memory;
  if (block_files) {
    PAGODA_ASSIGN_OR_RETURN(memory, BlockMemory::of(*parts.exec, kv));
  }
  parts.runner = make_runner({.exec = parts.exec.get(),
                              .decoder = std::move(decoder),
                              .kv = std::move(kv),
                              .options = {.logits_processors = options.logits_processors,
                                          .has_lookahead = parts.exec->is_asynchronous()},
                              .host_reads_blocks = memory.has_value()});
  parts.pool = std::make_unique<BlockPool>(sizing.num_blocks,
                                           options.kv_cache_layout == KvCacheLayout::kPaged
                                               ? BlockOrder::kLowest
                                               : BlockOrder::kConsecutive);
  const int max_num_batched_tokens = tokens_per_step(options, *parts.exec, sizing.max_num_seqs);
  const SchedulerOptions scheduler = {.block_size = sizing.layout.block_size,
                                      .group_windows = sizing.layout.group_windows,
                                      .max_num_seqs = sizing.max_num_seqs,
                                      .max_num_batched_tokens = max_num_batched_tokens,
                                      .row_tile = row_tile(*parts.exec),
                                      .max_model_len = sizing.max_model_len,
                                      .eos_token_ids = config.eos_token_ids};
  if (options.enable_prefix_caching) {
    PAGODA_RETURN_IF_ERROR(
        add_prefix_cache(checkpoint, config, options, sizing.layout, scheduler,
                         {.files = std::move(block_files), .memory = std::move(memory)}, parts));
  }
  parts.scheduler = std::make_unique<Scheduler>(scheduler, *parts.pool, parts.prefix_cache.get());
  parts.limits = {.max_model_len = sizing.max_model_len,
                  .max_num_seqs = parts.scheduler->options().max_num_seqs,
                  .max_num_batched_tokens = max_num_batched_tokens,
                  .max_queue = options.max_queue,
                  .vocab_size = config.vocab_size,
                  .has_head = config.has_head,
                  .backend = backend,
                  .arithmetic = parts.exec->arithmetic(),
                  .kv_cache = info_of(options, sizing)};
  parts.seed = options.seed;
  return parts;
}

}  // namespace pagoda
