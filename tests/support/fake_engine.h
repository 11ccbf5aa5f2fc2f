// FakeEngine: an Engine without a model, for tests of everything above the engine. It answers each
// request with tokens that a function chooses, at a chosen pace. Log-probabilities are computed
// from the ids. It counts calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "core/clock.h"
#include "engine/engine.h"

namespace pagoda {

// The answer of one sample: these tokens, then the end-of-sequence token or an error. For a request
// that pools: the embedding or the error.
struct FakeReply {
  std::vector<int> token_ids;
  std::vector<float> embedding;  // of a request that pools
  Status error;                  // not ok: the sample ends with this error after its tokens
  double prefill_s = 0;          // before the first token
};

struct FakeEngineOptions {
  EngineLimits limits = {.max_model_len = 2048,
                         .max_num_seqs = 64,
                         .max_num_batched_tokens = 2048,
                         .max_queue = 64,
                         .vocab_size = 300,
                         .kv_cache = {.formats = {KvFormat::kInt8, KvFormat::kInt4},
                                      .skipped_layers = {0, 3},
                                      .block_size = 16,
                                      .num_blocks = 400,
                                      .has_prefix_cache = true}};
  int eos_token_id = 0;
  double token_s = 0;  // between two tokens of a sample
  std::function<FakeReply(const GenerationRequest& request, int sample_index)> reply;
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(FakeEngineOptions options);
  ~FakeEngine() override;

  const EngineLimits& limits() const override { return options_.limits; }
  Status check_room(const QueueDemand& demand) const override;
  std::uint64_t draw_seed() override { return ++num_drawn_seeds_; }
  Result<RequestId> submit(GenerationRequest request, EventSink sink) override;
  void cancel(RequestId id) override;
  void cancel_sample(RequestId id, int sample_index) override;
  EngineStats stats() const override;
  void reset_prefix_cache(const std::string& cache_owner) override;
  void drain(double deadline_s) override;

  void set_healthy(bool healthy);

  std::vector<std::string> resets() const;  // of the prefix cache: each call's cache_owner
  // Counts the samples that cancel() or cancel_sample() ended.
  int num_cancelled_samples() const;
  // Returns the last accepted request.
  GenerationRequest last_request() const;

  // Returns the fake log-probability of a token.
  static float logprob_of(int token_id);

 private:
  Status check_room_locked(const QueueDemand& demand) const;

  struct Sample {
    FakeReply reply;
    int num_tokens = 0;
    bool cancelled = false;
    bool finished = false;
    Clock::TimePoint due;
  };
  struct Running {
    RequestId id = 0;
    GenerationRequest request;
    EventSink sink;
    std::vector<Sample> samples;
    Clock::TimePoint started;
  };

  void loop();
  Clock::TimePoint step(Clock::TimePoint now);
  void step_sample(Running& running, int sample_index, Clock::TimePoint now);
  void generate(const Running& running, Sample& sample, OutputEvent& event);
  int next_token(const Running& running, const Sample& sample) const;
  void finish(const Running& running, const Sample& sample, int token_id, OutputEvent& event) const;

  const FakeEngineOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Running> running_;
  EngineStats stats_;
  GenerationRequest last_request_;
  std::vector<std::string> resets_;
  RequestId next_id_ = 1;
  int num_cancelled_samples_ = 0;
  bool draining_ = false;
  bool stopping_ = false;
  std::atomic<std::uint64_t> num_drawn_seeds_ = 0;
  std::thread thread_;
};

}  // namespace pagoda
