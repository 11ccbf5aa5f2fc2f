// SchedulerSimulation: a scheduler under traffic, over a runner that keeps a KV cache of hashes,
// and a plain model of what the scheduler may do.
//
// A cache entry is the hash of its cache group and of all tokens up to its own: a real entry is a
// function of them too. A group's layers read the entries in their window. With lookahead a step is
// launched before the previous step is over. It runs as late as possible: when its own results are
// asked for, on the tables that it was launched with.
//
// After every plan and step it is checked that
// - the plan keeps to its budget, decodes first; no decode waits for two steps in a row, and no
//   chunk beside decodes costs more than it may;
// - a preempted sequence comes after all running ones; no sequence overtakes the queue's head,
//   and none waits without a reason;
// - every context reads back as its own through its tables, and a sequence holds no blocks that its
//   window has left;
// - every block has the expected number of holders. With a prefix cache, equal prefixes that run
//   share their blocks; without one, requests share no block. A block without a holder is
//   overwritten at once;
// - no step writes a slot that a step which may still run reads, nor does a block from the tier;
// - a sequence that waits for blocks of the tier holds cached blocks alone, and gives them up
//   before any is preempted. Others may overtake it. If none runs, its blocks keep arriving;
// - an admitted sequence starts after all its full blocks that are cached;
// - each row of a prompt is scored once.
//
// In the end every sequence has ended once, with the tokens that it would have alone, and all
// blocks are free. If a check fails, std::logic_error names its line.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <source_location>
#include <tuple>
#include <vector>

#include "engine/scheduler.h"
#include "tests/support/fake_block_tier.h"

namespace pagoda::testing {

// The time that the simulated machine takes for a step: seconds for all decodes together, and for
// each prompt token. Zeros: time is not measured.
struct SimulatedCost {
  double decode_step_s = 0;
  double prefill_token_s = 0;
};

// A tier below the prefix cache. Of 16 blocks to store it drops `dropped`. Of 16 blocks that it is
// asked for, `awaited` are late and keep others waiting, and `failed` fail. In `forgotten` of 16
// steps it forgets a block.
struct SimulatedTier {
  std::uint64_t seed = 0;
  int dropped = 0;
  int awaited = 0;
  int failed = 0;
  int forgotten = 0;
  int loads_per_step = 1;
};

struct SimulationOptions {
  SchedulerOptions scheduler;
  int num_blocks = 1;
  bool has_prefix_cache = false;
  std::optional<SimulatedTier> tier;  // below the prefix cache
  bool has_lookahead = false;
  SimulatedCost cost;
};

enum class StepEvent : std::uint8_t { kNone, kCancelDuringStep, kFailRow, kFailStep };

// Throws std::logic_error if `holds` is false.
void require(bool holds, const std::source_location& place = std::source_location::current());

// Returns the entry of a group after tokens with this hash.
inline std::uint64_t entry_of(std::uint64_t hash, int group) {
  return hash + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(group);
}

// Returns the hash of tokens with one more token at their end.
std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value);

class SchedulerSimulation {
 public:
  static constexpr int kVocabSize = 30;
  static constexpr int kEos = 0;

  explicit SchedulerSimulation(const SimulationOptions& options);

  void add(GenerationRequest request);  // with the next id; dropped if it can never fit
  void cancel(unsigned choice);
  void step(StepEvent event, unsigned choice);
  void finish();  // steps until everything has ended

  int num_steps() const { return num_steps_; }
  int num_steps_ahead() const { return num_steps_ahead_; }
  std::uint64_t num_tokens() const { return num_tokens_; }  // computed so far
  const Scheduler& scheduler() const { return scheduler_; }
  int num_fetched_blocks() const { return tier_ ? tier_->num_loaded : 0; }

 private:
  static constexpr std::uint64_t kUnowned = 0;  // the value of slots without an owner
  static constexpr int kMostAwaited = 5;        // late blocks in a row
  using Sample = std::pair<RequestId, int>;
  // The order of sequences: priority, request, sample.
  using Rank = std::tuple<int, RequestId, int>;
  using Tables = std::vector<std::vector<int>>;  // of one sequence, for each group
  struct Life {
    int num_run = 0;    // tokens in the cache once the steps in flight have run
    int num_read = 0;   // rows of the prompt that were read, to score or to pool
    int num_waits = 0;  // steps in a row that left this decode out
  };

  // A step that has been launched.
  struct Launched {
    const Plan* plan = nullptr;
    std::vector<Tables> tables;  // of its sequences
    bool is_ahead = false;
  };

  static Sample sample_of(const Sequence& sequence);
  static Sample sample_of(const Rank& rank) { return {std::get<1>(rank), std::get<2>(rank)}; }
  static Rank rank(const Sequence& sequence);
  // Returns the first row of the prompt to read, to score the token after it or to pool it.
  static int first_row_to_read(const Sequence& sequence);
  static int num_rows_to_read(const Sequence& sequence);
  int num_groups() const { return groups_.size(); }
  int worst_case(const GenerationRequest& request) const;  // tokens in the cache
  void disturb(const Sequence& sequence) { disturbed_.insert(sample_of(sequence)); }

  void launch(const Plan& plan, bool is_ahead);
  void look_ahead();
  void fail_steps();
  FakeBlockTier make_tier();
  bool happens(int in_16) { return static_cast<int>(random_() % 16) < in_16; }
  void note_before_plan();
  void check_plan(const Plan& plan, bool is_ahead);
  void check_order(const Launched& before, const Launched& after) const;
  std::set<int> slots_read(const Launched& step) const;
  std::set<int> slots_written(const Launched& step) const;
  int first_read(int group, int position) const;
  void note_turn();
  void check_preempted(const std::set<const Sequence*>& planned, bool is_ahead);
  void check_chunk(const PlannedSequence& planned, bool is_decode);
  int check_awaited(const PlannedSequence& planned) const;
  void check_decodes(const Plan& plan, const std::set<const Sequence*>& planned, bool is_ahead);
  void check_cost(const Plan& plan) const;
  void check_nobody_waits_in_vain(const Plan& plan) const;
  std::set<Rank> ranks_that_fetch() const;
  std::optional<Rank> first_in_queue() const;
  void check_progress(const Plan& plan);
  double seconds_of(const Plan& plan) const;
  std::uint64_t start_hash(const Sequence& sequence) const;
  void check_admitted(const PlannedSequence& planned);
  std::set<std::uint64_t> cached_ends() const;
  int longest_cached(const Sequence& sequence, int num_readable) const;
  std::vector<std::uint64_t> hashes_of(const Sequence& sequence, int num_tokens) const;
  int slot(const std::vector<int>& table, int position) const;
  int token_at(const PlannedSequence& planned, int position) const;
  void copy_blocks(const Plan& plan);
  void write(const Launched& step);
  bool is_late(const PlannedSequence& planned) const;
  std::uint64_t read_back(const PlannedSequence& planned, const Tables& tables);
  void run(const Launched& step, bool fail_first_row);
  std::map<int, int> holds_of_steps(std::set<int>& given_back) const;
  void check_tables(const Sequence& sequence) const;
  void check_fetched(const Sequence& sequence) const;
  void check_blocks();
  void collect();
  void go_on_instead_of(const Sequence& sequence);

  SimulationOptions options_;
  CacheGroups groups_;
  BlockPool pool_;
  std::mt19937_64 random_;  // for the tier
  std::optional<FakeBlockTier> tier_;
  std::optional<PrefixCache> cache_;
  Scheduler scheduler_;
  std::vector<std::uint64_t> slots_;         // the cache: a hash per slot
  std::vector<GenerationRequest> requests_;  // by id
  std::map<Rank, Sequence*> running_;        // with those that the plan admits
  std::map<Rank, Sequence*> with_others_;    // wait for their request's first sample to prefill
  std::map<RequestId, Rank> first_of_;       // that first sample
  std::set<Rank> waiting_;
  std::map<Sample, Life> lives_;
  std::set<Sample> disturbed_;  // cancelled or failed: may end early
  std::deque<Launched> in_flight_;
  std::vector<SampleOutcome> outcomes_;  // of the last step that ran
  std::uint64_t num_samples_ = 0;
  std::uint64_t num_ended_ = 0;
  std::uint64_t num_turns_ = 0;     // priority turns that were given
  bool blocks_were_short_ = false;  // in the last plan
  std::uint64_t num_evicted_ = 0;   // blocks evicted before the plan
  std::set<Rank> fetched_before_plan_;
  int num_awaited_ = 0;             // late blocks in a row
  int num_steps_without_plan_ = 0;  // in a row
  int num_steps_ = 0;
  int num_steps_ahead_ = 0;
  std::uint64_t num_tokens_ = 0;
};

}  // namespace pagoda::testing
