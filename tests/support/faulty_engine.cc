#include "tests/support/faulty_engine.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "engine/kv_sizing.h"
#include "engine/threaded_engine.h"

namespace pagoda {
namespace {

class FaultyRunner : public ModelRunner {
 public:
  FaultyRunner(Exec& exec, Decoder decoder, KvStore kv, Faults faults)
      : ModelRunner(exec, std::move(decoder), std::move(kv),
                    ModelRunnerOptions{.has_lookahead = faults.has_lookahead}),
        faults_(std::move(faults)) {}

  Status forward(const Plan& plan) override {
    if (faults_.of_forward) PAGODA_RETURN_IF_ERROR(faults_.of_forward(plan));
    return ModelRunner::forward(plan);
  }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override {
    if (faults_.of_sample) PAGODA_RETURN_IF_ERROR(faults_.of_sample(plan));
    return ModelRunner::sample(plan, wants_logits);
  }
  bool prefault(int first_block, bool beside_prompts) override {
    return faults_.prefault ? faults_.prefault(first_block, beside_prompts)
                            : ModelRunner::prefault(first_block, beside_prompts);
  }

 private:
  Faults faults_;
};

Result<EngineParts> make_parts(const std::string& path, const EngineOptions& options,
                               const Faults& faults) {
  constexpr std::int64_t kPlentyOfBytes = 1 << 28;
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(checkpoint));
  EngineParts parts;
  PAGODA_ASSIGN_OR_RETURN(
      parts.exec, make_exec({.backend = Backend::kCpu, .num_threads = options.num_threads}));
  PAGODA_ASSIGN_OR_RETURN(Decoder decoder, Decoder::load(*parts.exec, checkpoint, config));
  PAGODA_ASSIGN_OR_RETURN(const KvSizing sizing,
                          size_kv_cache(options, config, Backend::kCpu, kPlentyOfBytes));
  PAGODA_ASSIGN_OR_RETURN(KvStore kv,
                          KvStore::create(*parts.exec, sizing.layout, sizing.num_blocks));
  parts.runner =
      std::make_unique<FaultyRunner>(*parts.exec, std::move(decoder), std::move(kv), faults);
  parts.pool = std::make_unique<BlockPool>(sizing.num_blocks);
  parts.limits = {.max_model_len = sizing.max_model_len,
                  .max_num_seqs = sizing.max_num_seqs,
                  .max_num_batched_tokens =
                      options.max_num_batched_tokens > 0 ? options.max_num_batched_tokens : 256,
                  .max_queue = options.max_queue,
                  .vocab_size = config.vocab_size,
                  .backend = Backend::kCpu};
  parts.scheduler = std::make_unique<Scheduler>(
      SchedulerOptions{.block_size = sizing.layout.block_size,
                       .max_num_seqs = sizing.max_num_seqs,
                       .max_num_batched_tokens = parts.limits.max_num_batched_tokens,
                       .max_model_len = sizing.max_model_len,
                       .eos_token_ids = config.eos_token_ids},
      *parts.pool);
  return parts;
}

}  // namespace

std::unique_ptr<Engine> open_faulty_engine(const std::string& path, const EngineOptions& options,
                                           Faults faults) {
  Result<std::unique_ptr<Engine>> engine =
      ThreadedEngine::start([&] { return make_parts(path, options, faults); });
  if (engine.ok()) return *std::move(engine);
  ADD_FAILURE() << engine.status().message();
  return nullptr;
}

}  // namespace pagoda
