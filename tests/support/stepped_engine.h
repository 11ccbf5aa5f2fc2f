// SteppedEngine: what an Engine is made of, without its thread: a test calls its steps and so
// decides what is where in each of them. Between steps every KV block that nobody holds is filled
// with NaN, on a 16-bit cache too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_runner.h"
#include "engine/scheduler.h"
#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "tests/support/run_to_end.h"

namespace pagoda {

struct SteppedEngineOptions {
  Backend backend = Backend::kCpu;
  int num_threads = 1;
  int block_size = 16;
  BlockOrder block_order = BlockOrder::kConsecutive;
  int num_blocks = 0;
  int max_model_len = 0;
  int max_num_seqs = 16;
  int max_num_batched_tokens = 2048;
  bool has_prefix_cache = false;
  bool has_lookahead = false;
};

class SteppedEngine {
 public:
  // Fails the running test where the checkpoint cannot be loaded.
  SteppedEngine(const std::string& path, const SteppedEngineOptions& options);
  ~SteppedEngine();

  int vocab_size() const { return runner_->decoder().config().vocab_size; }

  // Returns the number of its first answer; the samples' follow one another.
  std::size_t add(const GenerationRequest& request);
  // Ends a step, and starts the one behind it where there is lookahead. `seconds`: what the
  // scheduler is told that the step took.
  void step(double seconds = 0);
  // Of the request whose answers begin with that one.
  void cancel_sample(std::size_t first_answer, int sample_index);
  bool idle() const { return scheduler_->idle(); }

  const std::vector<WholeAnswer>& answers() const { return answers_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const PrefixCache* cache() const { return cache_.get(); }
  const StepInputCounters& input_counters() const { return runner_->input_counters(); }
  const Plan& last_plan() const { return *plan_; }
  // Started before the tokens of the step in front of them were read.
  int num_steps_ahead() const { return num_steps_ahead_; }

 private:
  const Plan* launch(const Plan* plan);
  void take(const Plan& plan, const StepOutput& output);
  void take_finished();
  void poison();

  SteppedEngineOptions options_;
  std::unique_ptr<Exec> exec_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  const Plan* plan_ = nullptr;
  const Plan* next_ = nullptr;  // in flight already
  int num_steps_ahead_ = 0;
  std::vector<bool> is_poisoned_;              // blocks
  std::map<RequestId, std::size_t> first_of_;  // answer
  std::vector<WholeAnswer> answers_;
  RequestId next_id_ = 0;
};

}  // namespace pagoda
