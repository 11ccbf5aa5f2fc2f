#include "tests/support/stepped_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/backend.h"
#include "engine/engine_options.h"
#include "engine/kv_sizing.h"

namespace pagoda {
namespace {

// FNV-1a over 32-bit words, as the engine's logits_hash.
std::uint64_t hash_row(std::uint64_t hash, std::span<const float> logits) {
  for (const float value : logits)
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3ull;
  return hash;
}

// All bits set is a NaN of every floating-point type.
void fill_with_nan(Exec& exec, const Tensor& cache, int block_id) {
  const std::span<const std::byte> bytes = exec.read(cache).value();
  const std::size_t block_bytes = bytes.size() / static_cast<std::size_t>(cache.extent(0));
  std::memset(const_cast<std::byte*>(bytes.data()) + block_id * block_bytes, 0xff, block_bytes);
}

}  // namespace

SteppedEngine::SteppedEngine(const std::string& path, const SteppedEngineOptions& options)
    : options_(options) {
  exec_ = make_exec({.backend = options.backend, .num_threads = options.num_threads}).value();
  const Checkpoint checkpoint = Checkpoint::open(path).value();
  const ModelConfig config = read_model_config(checkpoint).value();
  const EngineOptions engine = {.max_model_len = options.max_model_len,
                                .max_num_seqs = options.max_num_seqs,
                                .block_size = options.block_size,
                                .num_kv_blocks = options.num_blocks};
  const KvSizing sizing =
      size_kv_cache(engine, config, options.backend, std::int64_t{1} << 32).value();
  runner_ = std::make_unique<ModelRunner>(
      *exec_, Decoder::load(*exec_, checkpoint, config).value(),
      KvStore::create(*exec_, sizing.layout, sizing.num_blocks).value(),
      ModelRunnerOptions{.has_lookahead = options.has_lookahead});
  pool_ = std::make_unique<BlockPool>(sizing.num_blocks, options.block_order);
  if (options.has_prefix_cache)
    cache_ = std::make_unique<PrefixCache>(*pool_, options.block_size, path);
  scheduler_ = std::make_unique<Scheduler>(
      SchedulerOptions{.block_size = options.block_size,
                       .max_num_seqs = options.max_num_seqs,
                       .max_num_batched_tokens = options.max_num_batched_tokens,
                       .max_model_len = sizing.max_model_len,
                       .eos_token_ids = config.eos_token_ids},
      *pool_, cache_.get());
  is_poisoned_.resize(sizing.num_blocks);
  poison();
}

SteppedEngine::~SteppedEngine() {
  runner_.reset();  // before what it computes on
}

std::size_t SteppedEngine::add(const GenerationRequest& request) {
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  EXPECT_EQ(scheduler_->check(num_prompt_tokens, request.sampling), Admission::kAdmitted);
  const std::size_t first = answers_.size();
  first_of_[next_id_] = first;
  answers_.resize(first + request.sampling.n, {.logits_hash = 0xcbf29ce484222325ull});
  if (request.sampling.prompt_logprobs) answers_[first].prompt_logprobs.emplace_back();
  scheduler_->add({.id = next_id_++,
                   .prompt_token_ids = request.prompt_token_ids,
                   .params = request.sampling,
                   .seed = request.sampling.seed.value_or(1),
                   .priority = request.priority,
                   .cache_salt = request.cache_salt,
                   .mask_source = request.mask_source});
  return first;
}

void SteppedEngine::cancel_sample(std::size_t first_answer, int sample_index) {
  for (const auto& [id, first] : first_of_) {
    if (first == first_answer) scheduler_->cancel_sample(id, sample_index);
  }
  take_finished();
}

const Plan* SteppedEngine::launch(const Plan* plan) {
  if (plan == nullptr) return nullptr;
  EXPECT_FALSE(plan->empty());
  const Status started = runner_->forward(*plan);
  EXPECT_TRUE(started.ok()) << started.message();
  return plan;
}

void SteppedEngine::step(double seconds) {
  plan_ = next_ == nullptr ? launch(&scheduler_->plan()) : next_;
  next_ = nullptr;
  const Status drawn = runner_->draw(*plan_);
  ASSERT_TRUE(drawn.ok()) << drawn.message();
  if (options_.has_lookahead && runner_->draws_ahead()) next_ = launch(scheduler_->plan_ahead());
  num_steps_ahead_ += next_ != nullptr;
  const Result<const StepOutput*> output = runner_->sample(*plan_, /*wants_logits=*/true);
  ASSERT_TRUE(output.ok()) << output.status().message();
  take(*plan_, **output);
  if (options_.has_lookahead && next_ == nullptr) next_ = launch(scheduler_->plan_ahead());
  scheduler_->commit(*plan_, (*output)->outcomes, seconds);
  take_finished();
  poison();
}

void SteppedEngine::take_finished() {
  for (const auto& sequence : scheduler_->take_finished()) {
    WholeAnswer& answer = answers_[first_of_[sequence->request_id()] + sequence->sample_index()];
    answer.finish_reason = sequence->finish_reason();
    answer.error = sequence->error();
    if (answer.finish_reason == FinishReason::kCancelled) {  // in a step, which drops its token
      const std::size_t num_kept = sequence->output().size();
      answer.token_ids.resize(num_kept);
      answer.logprobs.resize(std::min(num_kept, answer.logprobs.size()));
    }
    EXPECT_TRUE(std::equal(sequence->output().begin(), sequence->output().end(),
                           answer.token_ids.begin(), answer.token_ids.end()));
  }
}

void SteppedEngine::take(const Plan& plan, const StepOutput& output) {
  for (std::size_t i = 0; i < output.samples.size(); ++i) {
    const SampleOutput& sample = output.samples[i];
    if (sample.sequence->finished()) continue;  // by the step before
    if (output.outcomes[i].is_deferred) continue;
    WholeAnswer& answer =
        answers_[first_of_[sample.sequence->request_id()] + sample.sequence->sample_index()];
    answer.token_ids.push_back(output.outcomes[i].token_id);
    if (sample.logprobs) answer.logprobs.push_back(*sample.logprobs);
    answer.logits_hash = hash_row(answer.logits_hash, sample.logits);
  }
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const SequenceOutput& scores = output.of_sequence[i];
    EXPECT_TRUE(scores.score_error.ok()) << scores.score_error.message();
    WholeAnswer& answer = answers_[first_of_[plan.sequences[i].sequence->request_id()]];
    answer.prompt_logprobs.insert(answer.prompt_logprobs.end(), scores.scored.begin(),
                                  scores.scored.end());
  }
}

void SteppedEngine::poison() {
  for (int block = 0; block < pool_->num_blocks(); ++block) {
    const bool is_free = pool_->num_holders(block) == 0;
    if (is_free && !is_poisoned_[block]) {
      for (const KvView& view : runner_->kv().views()) {
        fill_with_nan(*exec_, view.keys, block);
        fill_with_nan(*exec_, view.values, block);
      }
    }
    is_poisoned_[block] = is_free;
  }
}

}  // namespace pagoda
