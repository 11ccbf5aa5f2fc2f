// The scheduler under any traffic: arrivals, cancels, priorities, failures and tiny pools, over a
// runner that keeps a KV cache of token ids. After every step it must hold that
//  - the plan keeps to its budget, decodes first, and leaves no decode out;
//  - no block has two owners, tables are as long as their contexts, and every slot holds its
//  sequence's token;
//  - nothing that could run waits, and nothing has overtaken what arrived before it;
// and at the end that every sequence has ended once, with the tokens that it would have had alone,
// and all blocks are free.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "engine/scheduler.h"
#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

constexpr int kVocabSize = 12;
constexpr int kEos = 0;

// The next token of a sequence: a function of its tokens and its sample alone, as with a real model
// and a seed.
int next_token(std::span<const int> tokens, int sample_index) {
  std::uint32_t hash = 2166136261u + static_cast<std::uint32_t>(sample_index);
  for (const int token : tokens) hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619u;
  return static_cast<int>((hash >> 8) % kVocabSize);
}

struct Ending {
  std::vector<int> tokens;
  FinishReason reason = FinishReason::kNone;
};

// The sequence run alone, without scheduler or cache.
Ending run_alone(const Request& request, int sample_index, int max_model_len) {
  const SamplingParams& params = request.params;
  Ending ending = {.tokens = request.prompt_token_ids, .reason = FinishReason::kLength};
  const int room = max_model_len - static_cast<int>(request.prompt_token_ids.size());
  for (int i = 0; i < std::min(params.max_tokens, room); ++i) {
    const int token = next_token(ending.tokens, sample_index);
    ending.tokens.push_back(token);
    const auto& stops = params.stop_token_ids;
    if ((token == kEos && !params.ignore_eos) ||
        std::find(stops.begin(), stops.end(), token) != stops.end()) {
      ending.reason = FinishReason::kStop;
      break;
    }
  }
  return ending;
}

enum class Event { kAdd, kStep, kCancel, kCancelDuringStep, kFailRow, kFailStep };

class Simulation {
 public:
  Simulation(const SchedulerOptions& options, int num_blocks)
      : options_(options),
        pool_(num_blocks),
        scheduler_(options, pool_),
        slots_(static_cast<std::size_t>(num_blocks) * options.block_size, -1) {}

  void add(Request request) {
    request.id = static_cast<RequestId>(requests_.size());
    const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
    if (scheduler_.check(num_prompt_tokens, request.params) != Admission::kAdmitted) {
      RC_ASSERT(worst_case(request) > pool_.num_blocks());
      return;
    }
    scheduler_.add(request);
    for (int sample = 0; sample < request.params.n; ++sample) {
      waiting_.insert({request.priority, request.id, sample});
    }
    requests_.push_back(request);
  }

  void cancel(unsigned choice) {
    if (requests_.empty()) return;
    const RequestId id = choice % requests_.size();
    if (choice % 3 == 0) {
      scheduler_.cancel(id);
      for (int sample = 0; sample < requests_[id].params.n; ++sample)
        disturbed_.insert({id, sample});
    } else {
      scheduler_.cancel_sample(id, 0);
      disturbed_.insert({id, 0});
    }
    collect();
  }

  void step(Event event, unsigned choice) {
    const Plan& plan = scheduler_.plan();
    check_plan(plan);
    if (event == Event::kCancelDuringStep) cancel(choice);
    if (event == Event::kFailStep) {
      for (const PlannedSequence& planned : plan.sequences) disturb(*planned.sequence);
      scheduler_.fail(plan, internal_error("step"));
    } else {
      scheduler_.commit(plan, run(plan, event == Event::kFailRow));
    }
    collect();
    check_blocks();
  }

  void finish() {
    // Every step computes at least a token, so this many are enough.
    std::size_t limit = 1;
    for (const Request& request : requests_) {
      limit += request.params.n * (request.prompt_token_ids.size() + request.params.max_tokens);
    }
    for (; !scheduler_.idle(); --limit) {
      RC_ASSERT(limit > 0u);
      step(Event::kStep, 0);
    }
    RC_ASSERT(scheduler_.plan().empty());
    RC_ASSERT(pool_.num_free() == pool_.num_blocks());
    std::size_t num_samples = 0;
    for (const Request& request : requests_) num_samples += request.params.n;
    RC_ASSERT(ended_.size() == num_samples);
  }

 private:
  using Sample = std::pair<RequestId, int>;
  using Rank =
      std::tuple<int, RequestId, int>;  // priority, request, sample: the order of admission

  static Sample sample_of(const Sequence& sequence) {
    return {sequence.request_id(), sequence.sample_index()};
  }

  int worst_case(const Request& request) const {
    const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
    const int longest =
        std::min(num_prompt_tokens + request.params.max_tokens, options_.max_model_len);
    const int num_stored = std::max(num_prompt_tokens, longest - 1);
    return (num_stored + options_.block_size - 1) / options_.block_size;
  }

  static Rank rank(const Sequence& sequence) {
    return {sequence.priority(), sequence.request_id(), sequence.sample_index()};
  }

  void disturb(const Sequence& sequence) { disturbed_.insert(sample_of(sequence)); }

  void check_plan(const Plan& plan) {
    int num_tokens = 0, num_samples = 0, num_decodes_wanted = 0;
    std::set<const Sequence*> planned_sequences;
    for (const Sequence* sequence : running_) num_decodes_wanted += sequence->num_pending() == 1;
    RC_ASSERT(plan.num_decodes == num_decodes_wanted);
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
      const PlannedSequence& planned = plan.sequences[i];
      Sequence* sequence = planned.sequence;
      RC_ASSERT(planned_sequences.insert(sequence).second);
      if (waiting_.erase(rank(*sequence)) > 0) {  // admitted now: nothing that came before it waits
        RC_ASSERT(waiting_.empty() || rank(*sequence) < *waiting_.begin());
        running_.insert(sequence);
      }
      RC_ASSERT(running_.count(sequence) == 1u);
      check_chunk(planned, static_cast<int>(i) < plan.num_decodes);
      num_tokens += planned.num_new_tokens;
      num_samples += planned.samples;
    }
    RC_ASSERT(plan.num_tokens == num_tokens);
    RC_ASSERT(plan.num_samples == num_samples);
    RC_ASSERT(num_tokens <= options_.max_num_batched_tokens);
    RC_ASSERT(static_cast<int>(running_.size()) <= options_.max_num_seqs);
    RC_ASSERT(static_cast<int>(running_.size()) == scheduler_.num_running());
    RC_ASSERT(static_cast<int>(waiting_.size()) == scheduler_.num_waiting());
    check_nobody_waits_in_vain(num_tokens);
  }

  void check_chunk(const PlannedSequence& planned, bool is_decode) {
    const Sequence& sequence = *planned.sequence;
    if (is_decode) RC_ASSERT(planned.num_new_tokens == 1);
    RC_ASSERT(planned.num_new_tokens > 0);
    RC_ASSERT(planned.first_position == num_run_[sample_of(sequence)]);
    RC_ASSERT(planned.context_len() <= sequence.num_tokens());
    const int num_blocks = (planned.context_len() + options_.block_size - 1) / options_.block_size;
    RC_ASSERT(static_cast<int>(sequence.block_table().size()) == num_blocks);
    const int max_tokens = requests_[sequence.request_id()].params.max_tokens;
    RC_ASSERT(planned.samples ==
              (planned.context_len() == sequence.num_tokens() && max_tokens > 0));
    int num_scored = 0;
    for (int p = planned.first_position; p < planned.context_len(); ++p) {
      num_scored += sequence.scores_prompt() && p + 1 < sequence.num_prompt_tokens();
    }
    RC_ASSERT(planned.num_scored_rows == num_scored);
  }

  void check_nobody_waits_in_vain(int num_tokens) {
    if (waiting_.empty() || num_tokens == options_.max_num_batched_tokens) return;
    int num_reserved = worst_case(requests_[std::get<RequestId>(*waiting_.begin())]);
    for (const Sequence* sequence : running_)
      num_reserved += worst_case(requests_[sequence->request_id()]);
    const int max_num_seqs = std::min(options_.max_num_seqs, options_.max_num_batched_tokens);
    RC_ASSERT(static_cast<int>(running_.size()) == max_num_seqs ||
              num_reserved > pool_.num_blocks());
  }

  // Writes the chunks into the cache, reads every context back through its table, and samples.
  std::vector<SampleOutcome> run(const Plan& plan, bool fail_first_row) {
    const auto slot = [this](const Sequence& sequence, int position) -> int& {
      const int block = sequence.block_table()[position / options_.block_size];
      return slots_[block * options_.block_size + position % options_.block_size];
    };
    for (const PlannedSequence& planned : plan.sequences) {
      for (int p = planned.first_position; p < planned.context_len(); ++p) {
        slot(*planned.sequence, p) = planned.sequence->token(p);
      }
    }
    std::vector<SampleOutcome> outcomes;
    for (const PlannedSequence& planned : plan.sequences) {
      const Sequence& sequence = *planned.sequence;
      num_run_[sample_of(sequence)] = planned.context_len();
      std::vector<int> context;
      for (int p = 0; p < planned.context_len(); ++p) context.push_back(slot(sequence, p));
      const auto known = sequence.tokens().first(planned.context_len());
      RC_ASSERT(std::equal(context.begin(), context.end(), known.begin()));
      if (!planned.samples) continue;
      outcomes.push_back({.token_id = next_token(context, sequence.sample_index())});
      if (fail_first_row && outcomes.size() == 1) {
        outcomes[0].status = internal_error("row");
        disturb(sequence);
      }
    }
    return outcomes;
  }

  void check_blocks() {
    std::set<int> taken;
    for (const Sequence* sequence : running_) {
      for (const int block : sequence->block_table()) {
        RC_ASSERT(taken.insert(block).second);
        RC_ASSERT(pool_.num_holders(block) == 1);
      }
    }
    RC_ASSERT(pool_.num_free() == pool_.num_blocks() - static_cast<int>(taken.size()));
  }

  void collect() {
    for (const auto& sequence : scheduler_.take_finished()) {
      const Sample sample = sample_of(*sequence);
      RC_ASSERT(ended_.insert(sample).second);
      RC_ASSERT(waiting_.erase(rank(*sequence)) + running_.erase(sequence.get()) == 1u);
      RC_ASSERT(sequence->block_table().empty());
      const Ending alone =
          run_alone(requests_[sample.first], sample.second, options_.max_model_len);
      const auto tokens = sequence->tokens();
      if (disturbed_.count(sample) == 0) {
        RC_ASSERT(sequence->finish_reason() == alone.reason);
        RC_ASSERT(tokens.size() == alone.tokens.size());
      }
      RC_ASSERT(tokens.size() <= alone.tokens.size());
      RC_ASSERT(std::equal(tokens.begin(), tokens.end(), alone.tokens.begin()));
    }
  }

  SchedulerOptions options_;
  BlockPool pool_;
  Scheduler scheduler_;
  std::vector<int> slots_;  // the cache: a token id a slot
  std::vector<Request> requests_;
  std::set<Rank> waiting_;
  std::set<Sequence*> running_;
  std::map<Sample, int> num_run_;
  std::set<Sample> disturbed_;  // cancelled or failed: may end early
  std::set<Sample> ended_;
};

rc::Gen<SchedulerOptions> gen_options() {
  return rc::gen::exec([] {
    SchedulerOptions options;
    options.block_size = *rc::gen::element(1, 2, 3, 4, 16, 24);
    options.max_num_seqs = *rc::gen::inRange(1, 9);
    options.max_num_batched_tokens = *rc::gen::element(1, 2, 3, 7, 16, 64);
    options.max_model_len = 24;
    options.eos_token_ids = {kEos};
    return options;
  });
}

rc::Gen<Request> gen_request() {
  return rc::gen::exec([] {
    Request request;
    const int num_prompt_tokens = *rc::gen::inRange(1, 24);
    request.prompt_token_ids =
        *rc::gen::container<std::vector<int>>(num_prompt_tokens, rc::gen::inRange(0, kVocabSize));
    request.priority = *rc::gen::element(0, 0, 0, 1, -1);
    SamplingParams& params = request.params;
    params.max_tokens = *rc::gen::inRange(1, 30);
    params.n = *rc::gen::element(1, 1, 1, 3);
    params.ignore_eos = *rc::gen::arbitrary<bool>();
    if (*rc::gen::inRange(0, 4) == 0) params.stop_token_ids = {3, 4};
    if (*rc::gen::inRange(0, 4) == 0) params.prompt_logprobs = 0;
    if (params.prompt_logprobs && *rc::gen::arbitrary<bool>()) params.max_tokens = 0;
    return request;
  });
}

RC_GTEST_PROP(SchedulerSimulation, KeepsItsPromisesUnderAnyTraffic, ()) {
  const SchedulerOptions options = *gen_options();
  const int num_blocks = *rc::gen::inRange(1, 40);
  const auto events = *rc::gen::container<std::vector<std::pair<Event, unsigned>>>(rc::gen::pair(
      rc::gen::element(Event::kAdd, Event::kAdd, Event::kStep, Event::kStep, Event::kStep,
                       Event::kCancel, Event::kCancelDuringStep, Event::kFailRow, Event::kFailStep),
      rc::gen::arbitrary<unsigned>()));
  Simulation simulation(options, num_blocks);
  for (const auto& [event, choice] : events) {
    if (event == Event::kAdd) {
      simulation.add(*gen_request());
    } else if (event == Event::kCancel) {
      simulation.cancel(choice);
    } else {
      simulation.step(event, choice);
    }
  }
  simulation.finish();
}

// Nothing is disturbed here: every answer must be the one that the sequence has alone.
RC_GTEST_PROP(SchedulerSimulation, AnswersNeverDependOnTheCompany, ()) {
  const SchedulerOptions options = *gen_options();
  const int num_blocks = *rc::gen::inRange(1, 40);
  const auto requests = *rc::gen::container<std::vector<std::pair<Request, bool>>>(
      rc::gen::pair(gen_request(), rc::gen::arbitrary<bool>()));
  Simulation simulation(options, num_blocks);
  for (const auto& [request, steps] : requests) {
    simulation.add(request);
    if (steps) simulation.step(Event::kStep, 0);
  }
  simulation.finish();
}

}  // namespace

// For RapidCheck's report of a failure, under the name that it looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void showValue(const Request& request, std::ostream& os) {
  os << "prompt of " << request.prompt_token_ids.size() << ", max_tokens "
     << request.params.max_tokens << ", n " << request.params.n << ", priority "
     << request.priority;
}

// NOLINTNEXTLINE(readability-identifier-naming)
void showValue(const SchedulerOptions& options, std::ostream& os) {
  os << "block_size " << options.block_size << ", max_num_seqs " << options.max_num_seqs
     << ", max_num_batched_tokens " << options.max_num_batched_tokens;
}

}  // namespace pagoda
