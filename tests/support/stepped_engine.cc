#include "tests/support/stepped_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "engine/assemble.h"
#include "tests/support/wrapped_runner.h"

namespace pagoda {
namespace {

// Sets all bits: a NaN in every floating-point type, and in int8 a code that is never written.
void fill_with_nan(Exec& exec, const Tensor& cache, int block_id, int num_blocks) {
  const std::span<const std::byte> bytes = exec.read(cache).value();
  const std::size_t block_bytes = bytes.size() / static_cast<std::size_t>(num_blocks);
  std::memset(const_cast<std::byte*>(bytes.data()) + block_id * block_bytes, 0xff, block_bytes);
}

}  // namespace

// Advances the clock by the step's time when the engine waits for its results.
class SteppedEngine::TimedRunner final : public WrappedRunner {
 public:
  TimedRunner(std::unique_ptr<StepRunner> runner, SteppedEngine& engine)
      : WrappedRunner(std::move(runner)), engine_(engine) {}

  Status forward(const Plan& plan) override {
    EXPECT_FALSE(plan.empty());
    return WrappedRunner::forward(plan);
  }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override {
    engine_.clock_.pass(engine_.step_seconds_);
    return WrappedRunner::sample(plan, wants_logits);
  }

 private:
  SteppedEngine& engine_;
};

SteppedEngine::SteppedEngine(const std::string& path, const SteppedEngineOptions& options) {
  const EngineOptions engine = {.backend = options.backend,
                                .num_threads = options.num_threads,
                                .max_model_len = options.max_model_len,
                                .max_num_seqs = options.max_num_seqs,
                                .max_num_batched_tokens = options.max_num_batched_tokens,
                                .block_size = options.block_size,
                                .num_kv_blocks = options.num_blocks,
                                .kv_cache_layout = options.block_order == BlockOrder::kLowest
                                                       ? KvCacheLayout::kPaged
                                                       : KvCacheLayout::kAuto,
                                .kv_cache_formats = options.kv_cache_formats,
                                .enable_prefix_caching = options.has_prefix_cache,
                                .prefix_cache_dir = options.prefix_cache_dir};
  const auto make_runner = [&](RunnerParts parts) -> std::unique_ptr<StepRunner> {
    parts.options.has_lookahead = options.has_lookahead;
    exec_ = parts.exec;
    auto runner =
        std::make_unique<ModelRunner>(*parts.exec, std::move(parts.decoder), std::move(parts.kv),
                                      std::move(parts.options), parts.host_reads_blocks);
    runner_ = runner.get();
    return std::make_unique<TimedRunner>(std::move(runner), *this);
  };
  const Checkpoint checkpoint = Checkpoint::open(path).value();
  const ModelConfig config = read_model_config(checkpoint).value();
  core_ = std::make_unique<EngineCore>(
      assemble(checkpoint, config, engine, {}, make_runner).value(),
      /*leaves_queue=*/[](const QueueDemand&) {}, clock_);
  is_poisoned_.resize(core_->pool().num_blocks());
  poison();
}

std::size_t SteppedEngine::add(GenerationRequest request) {
  const Status admitted = core_->check(request);
  EXPECT_TRUE(admitted.ok()) << admitted.message();
  const std::size_t first = answers_.size();
  answers_.resize(first + request.sampling.n);
  request.hash_logits = true;
  core_->add(/*id=*/first, std::move(request), [this, first](OutputEvent event) {
    WholeAnswer& answer = answers_[first + event.sample_index];
    add_event(std::move(event), answer);
  });
  return first;
}

void SteppedEngine::cancel_sample(std::size_t first_answer, int sample_index) {
  core_->cancel_sample(first_answer, sample_index);
}

void SteppedEngine::step(double seconds) {
  step_seconds_ = seconds;
  Result<bool> stepped = core_->step();
  while (stepped.ok() && !*stepped && !scheduler().fetching().empty()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    stepped = core_->step();
  }
  ASSERT_TRUE(stepped.ok()) << stepped.status().message();
  ASSERT_TRUE(*stepped);
  poison();
}

void SteppedEngine::poison() {
  for (int block = 0; block < core_->pool().num_blocks(); ++block) {
    const bool is_free = core_->pool().num_holders(block) == 0;
    if (is_free && !is_poisoned_[block]) {
      for (const KvView& view : runner_->kv().views()) {
        for (const Tensor& array : view.arrays())
          fill_with_nan(*exec_, array, block, core_->pool().num_blocks());
      }
    }
    is_poisoned_[block] = is_free;
  }
}

}  // namespace pagoda
