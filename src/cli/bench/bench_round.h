// BenchRound: the figures of one batch of random prompts, in the engine's own times, and the
// machine's limits measured right before and after it. `bench latency` and `bench throughput` share
// it.
#pragma once

#include <memory>
#include <vector>

#include "cli/bench/machine_limits.h"
#include "cli/flags/engine_flags.h"
#include "core/ordered_json.h"
#include "core/status.h"
#include "engine/engine.h"
#include "serving/served_model.h"
#include "tensor/op_profile.h"

namespace CLI {
class App;
}

namespace pagoda {

struct BenchFlags {
  EngineFlags engine;
  int num_prompts = 1;
  int input_len = 512;   // tokens
  int output_len = 128;  // tokens
  bool as_json = false;
  bool profiles = false;
};

// Adds MODEL, the engine's flags, --input-len, --output-len, --json, --profile. The flag for
// `num_prompts` has another name in each subcommand.
void add_bench_flags(CLI::App& command, BenchFlags& flags);

// The time and the work of one round.
struct BenchRound {
  double total_s = 0;    // from the first prompt's submission to the last token
  double prefill_s = 0;  // its part in steps that computed prompt tokens
  double decode_s = 0;   // its part in all other steps
  double prompt_tokens = 0;
  double generated_tokens = 0;
  double decode_steps = 0;
  double decode_tokens = 0;  // generated in decode steps
  double read_bytes = 0;     // in decode steps: weights, and the keys and values of every context
  double prefill_products = 0;
  MachineLimits limits;  // the better of the measurements before and after
};

// A loaded model, with the probe of the machine's limits and the op profile.
class BenchedModel {
 public:
  static Result<std::unique_ptr<BenchedModel>> load(const BenchFlags& flags);

  // Runs `num_prompts` prompts of the flags' length, all at once, with `output_len` tokens each.
  // The prompts are a function of the seed.
  Result<BenchRound> run(int num_prompts, int output_len);

  const ServedModel& model() const { return *model_; }
  const BenchFlags& flags() const { return flags_; }
  OpProfile* profile() const { return profile_.get(); }  // null if not asked for

 private:
  explicit BenchedModel(const BenchFlags& flags)
      : flags_(flags), probe_(flags.engine.engine.num_threads) {}

  BenchFlags flags_;
  MachineProbe probe_;
  std::shared_ptr<OpProfile> profile_;
  std::unique_ptr<ServedModel> model_;
};

// Returns every figure of a round with its share of the machine's limit.
OrderedJson bench_figures(const BenchedModel& bench, const BenchRound& round);
// Prints three lines of those figures: prefill, decode and the KV cache.
void print_bench_figures(const OrderedJson& figures);
// Prints the profile's table on stdout, or adds "profile" to the figures.
void add_profile(const BenchedModel& bench, const MachineLimits& limits, OrderedJson& figures);

}  // namespace pagoda
