// The rules that every plan keeps.
#include <algorithm>
#include <limits>
#include <utility>

#include "tests/support/scheduler_simulation.h"

namespace pagoda::testing {

void SchedulerSimulation::note_before_plan() {
  if (cache_) num_evicted_ = cache_->counters().num_evicted_blocks;
  fetched_before_plan_ = ranks_that_fetch();
}

// Returns the sequences that wait for blocks of the tier, and the other samples of their requests.
std::set<SchedulerSimulation::Rank> SchedulerSimulation::ranks_that_fetch() const {
  std::set<Rank> ranks;
  for (const auto& sequence : scheduler_.fetching()) {
    ranks.insert(rank(*sequence));
    for (const auto& fork : sequence->forks()) ranks.insert(rank(*fork));
  }
  return ranks;
}

std::optional<SchedulerSimulation::Rank> SchedulerSimulation::first_in_queue() const {
  const std::set<Rank> fetching = ranks_that_fetch();
  for (const Rank& rank : waiting_) {
    if (fetching.count(rank) == 0) return rank;
  }
  return std::nullopt;
}

void SchedulerSimulation::check_plan(const Plan& plan, bool is_ahead) {
  std::set<const Sequence*> planned_sequences;
  for (const PlannedSequence& planned : plan.sequences) {
    require(planned_sequences.insert(planned.sequence).second);
  }
  const auto fetching = scheduler_.fetching();
  require(std::is_sorted(fetching.begin(), fetching.end(), runs_before));
  check_preempted(planned_sequences, is_ahead);
  check_decodes(plan, planned_sequences, is_ahead);
  int num_tokens = 0, num_samples = 0;
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& planned = plan.sequences[i];
    Sequence* sequence = planned.sequence;
    // The request's other samples are admitted with it.
    for (const auto& fork : sequence->forks()) {
      if (waiting_.erase(rank(*fork)) > 0) with_others_[rank(*fork)] = fork.get();
      first_of_[sequence->request_id()] = rank(*sequence);
    }
    if (waiting_.erase(rank(*sequence)) > 0) {  // admitted now: no earlier sequence waits
      const std::optional<Rank> first = first_in_queue();
      require(!first || rank(*sequence) < *first);
      require(!blocks_were_short_);
      running_[rank(*sequence)] = sequence;
      check_admitted(planned);
    }
    require(running_.count(rank(*sequence)) == 1u);
    check_chunk(planned, static_cast<int>(i) < plan.num_decodes);
    num_tokens += planned.num_new_tokens;
    num_samples += planned.samples ? 1 + sequence->num_forks() : 0;
  }
  require(plan.num_tokens == num_tokens);
  require(plan.num_samples == num_samples);
  require(num_tokens <= options_.scheduler.max_num_batched_tokens);
  const auto num_running = static_cast<int>(running_.size() + with_others_.size());
  require(num_running <= options_.scheduler.max_num_seqs);
  require(num_running == scheduler_.num_running());
  require(static_cast<int>(waiting_.size()) == scheduler_.num_waiting());
  check_progress(plan);
  num_tokens_ += num_tokens;
  check_cost(plan);
  check_nobody_waits_in_vain(plan);
}

// Checks that a step is planned whenever a sequence runs or could run. Sequences that wait for the
// tier's blocks wait for a bounded time.
void SchedulerSimulation::check_progress(const Plan& plan) {
  num_steps_without_plan_ = plan.empty() && !scheduler_.idle() ? num_steps_without_plan_ + 1 : 0;
  if (!plan.empty()) return;
  require(running_.empty());
  require(scheduler_.idle() || !scheduler_.fetching().empty());
  const SchedulerOptions& options = options_.scheduler;
  require(num_steps_without_plan_ <= (kMostAwaited + 1) * options.max_num_seqs * num_groups() *
                                         (groups_.blocks_for(options.max_model_len) + 1));
}

// Notes a priority turn. It goes to the request that arrived first of all in the queue, which then
// precedes all others.
void SchedulerSimulation::note_turn() {
  const std::uint64_t num_turns = scheduler_.counters().num_priority_turns;
  if (num_turns == num_turns_) return;
  require(num_turns == num_turns_ + 1);
  num_turns_ = num_turns;
  const auto came_before = [](const Rank& a, const Rank& b) { return sample_of(a) < sample_of(b); };
  std::set<Rank> queued = waiting_;
  for (const Rank& rank : fetched_before_plan_) queued.erase(rank);
  const auto place = std::min_element(queued.begin(), queued.end(), came_before);
  require(place != queued.end());
  const RequestId id = sample_of(*place).first;
  const auto moved = [&](Rank rank) {
    if (sample_of(rank).first == id) std::get<0>(rank) = std::numeric_limits<int>::min();
    return rank;
  };
  std::set<Rank> waiting;
  for (const Rank& rank : waiting_) waiting.insert(moved(rank));
  waiting_ = std::move(waiting);
  for (auto* const sequences : {&running_, &with_others_}) {
    std::map<Rank, Sequence*> ranked;
    for (const auto& [rank, sequence] : *sequences) ranked.emplace(moved(rank), sequence);
    *sequences = std::move(ranked);
  }
  if (const auto first = first_of_.find(id); first != first_of_.end())
    first->second = moved(first->second);
}

// Checks that sequences that ran and now hold nothing come after all that still run.
void SchedulerSimulation::check_preempted(const std::set<const Sequence*>& planned, bool is_ahead) {
  blocks_were_short_ = false;
  for (auto it = running_.begin(); it != running_.end();) {
    const Sequence& sequence = *it->second;
    if (sequence.num_planned() > 0) {
      require(!blocks_were_short_);
      ++it;
      continue;
    }
    require(!is_ahead && scheduler_.fetching().empty());
    require(planned.count(&sequence) == 0u);
    require(sequence.block_table().empty());
    require(it != running_.begin());
    blocks_were_short_ = true;
    Life& life = lives_.at(sample_of(sequence));
    life.num_run = life.num_waits = 0;
    waiting_.insert(it->first);
    for (const auto& fork : sequence.forks()) {
      require(with_others_.erase(rank(*fork)) == 1);
      waiting_.insert(rank(*fork));
    }
    it = running_.erase(it);
  }
}

// Checks which decodes are left out of a step:
// - all of them, if prompts have the step to themselves, but never twice in a row;
// - the last of all, if there is no block for it;
// - after a step in flight, a sequence that has ended or may end, or that waits with its request's
//   other samples.
void SchedulerSimulation::check_decodes(const Plan& plan, const std::set<const Sequence*>& planned,
                                        bool is_ahead) {
  const bool decodes_have_part = plan.num_decodes > 0;
  for (const auto& [rank, sequence] : running_) {
    Life& life = lives_.at(sample_of(*sequence));
    if (sequence->num_pending() != 1 || planned.count(sequence) > 0) {
      life.num_waits = 0;
      continue;
    }
    const bool may_end = sequence->finished() || disturbed_.count(sample_of(*sequence)) > 0;
    if (is_ahead && (may_end || sequence->num_forks() > 0)) continue;
    if (rank == running_.rbegin()->first && scheduler_.num_free_blocks() < num_groups()) {
      require(scheduler_.fetching().empty());
      blocks_were_short_ = true;
      continue;
    }
    require(!decodes_have_part);
    require(++life.num_waits == 1);
  }
}

void SchedulerSimulation::check_chunk(const PlannedSequence& planned, bool is_decode) {
  const Sequence& sequence = *planned.sequence;
  Life& life = lives_.at(sample_of(sequence));
  require(planned.num_new_tokens > 0);
  const int num_known = check_awaited(planned);
  require(!is_decode || num_known - planned.first_position == 1);
  require(planned.first_position == life.num_run);
  require(planned.context_len() <= num_known);
  require(!sequence.finished());
  for (int group = 0; group < num_groups(); ++group) {
    require(static_cast<int>(sequence.block_table(group).size()) ==
            groups_.blocks_for(planned.context_len()));
  }
  const SamplingParams& params = requests_[sequence.request_id()].sampling;
  require(planned.samples == (planned.context_len() == num_known && params.max_tokens > 0));
  // Tokens that no client would read are not computed.
  require(params.max_tokens == 0 || num_known < sequence.max_num_tokens());
  int num_read = 0;
  for (int p = planned.first_position; p < planned.context_len(); ++p) {
    const int row = p - first_row_to_read(sequence);
    if (row < life.num_read || row >= num_rows_to_read(sequence)) continue;
    require(num_read > 0 || planned.first_read_row == p - planned.first_position);
    ++num_read;
  }
  require(planned.num_read_rows == num_read);
  life.num_read += num_read;
}

int SchedulerSimulation::first_row_to_read(const Sequence& sequence) {
  return sequence.pooling() == Pooling::kLast ? sequence.num_prompt_tokens() - 1 : 0;
}

int SchedulerSimulation::num_rows_to_read(const Sequence& sequence) {
  if (sequence.pooling() == Pooling::kMean) return sequence.num_prompt_tokens();
  if (sequence.pooling() != Pooling::kNone) return 1;
  return sequence.scores_prompt() ? sequence.num_prompt_tokens() - 1 : 0;
}

// Returns how many tokens the sequence has for the step, with one that the step in flight samples.
int SchedulerSimulation::check_awaited(const PlannedSequence& planned) const {
  const Sequence& sequence = *planned.sequence;
  const bool awaits = planned.first_position == sequence.num_tokens();
  require((planned.awaited_outcome >= 0) == awaits);
  if (!awaits) return sequence.num_tokens();
  require(in_flight_.size() == 1u);
  int num_outcomes = 0;
  for (const PlannedSequence& before : in_flight_.front().plan->sequences) {
    if (!before.samples) continue;
    if (before.sequence == &sequence) {
      require(num_outcomes == planned.awaited_outcome);
      return sequence.num_tokens() + 1;
    }
    num_outcomes += 1 + before.sequence->num_forks();
  }
  require(false);
  return 0;
}

double SchedulerSimulation::seconds_of(const Plan& plan) const {
  return (plan.num_decodes > 0 ? options_.cost.decode_step_s : 0) +
         options_.cost.prefill_token_s * (plan.num_tokens - plan.num_decodes);
}

void SchedulerSimulation::check_cost(const Plan& plan) const {
  if (plan.num_decodes == 0 || plan.is_decode()) return;
  const SimulatedCost& cost = options_.cost;
  const double least = cost.decode_step_s + cost.prefill_token_s;  // with one prompt token
  const auto num_prompts = static_cast<int>(running_.size() + waiting_.size()) - plan.num_decodes;
  const double most = StepCost::max_mixed_step(num_prompts) * cost.decode_step_s;
  require(seconds_of(plan) <= std::max(least, most) * 1.001);
}

void SchedulerSimulation::check_nobody_waits_in_vain(const Plan& plan) const {
  const bool is_limited = options_.cost.decode_step_s > 0;
  const int num_places =
      std::min(options_.scheduler.max_num_seqs, options_.scheduler.max_num_batched_tokens);
  const std::optional<Rank> first = first_in_queue();
  if (!first || is_limited || blocks_were_short_ ||
      plan.num_tokens == options_.scheduler.max_num_batched_tokens) {
    return;
  }
  // Bounds the blocks that are wanted. Beside the head's prompt, each sample of its request needs
  // at most a place and a block of each group. With a window a sequence needs at most what its
  // longest chunk reads.
  const auto [priority, head, sample] = *first;
  const auto num_samples =
      static_cast<int>(std::count_if(waiting_.begin(), waiting_.end(), [&](const Rank& rank) {
        return std::get<RequestId>(rank) == head;
      }));
  const auto num_running = static_cast<int>(running_.size() + with_others_.size());
  const auto num_fetching = static_cast<int>(scheduler_.fetching().size());
  if (num_running + num_fetching + num_samples > num_places) return;
  int num_wanted = (num_samples + static_cast<int>(with_others_.size())) * num_groups();
  const auto add_wanted = [&](const Sequence* sequence, int num_blocks) {
    for (int group = 0; group < num_groups(); ++group) {
      const int most =
          groups_.most_held(group, num_blocks, options_.scheduler.max_num_batched_tokens);
      std::span<const int> held;
      if (sequence != nullptr) held = sequence->block_table(group);
      const auto num_held =
          std::count_if(held.begin(), held.end(), [](int block) { return block != kNoBlock; });
      num_wanted += std::max(0, most - static_cast<int>(num_held));
    }
  };
  add_wanted(nullptr, groups_.blocks_for(worst_case(requests_[head])));
  for (const auto& sequence : scheduler_.fetching())
    add_wanted(sequence.get(), groups_.blocks_for(sequence->num_tokens()));
  for (const auto& [rank, sequence] : running_) {
    const bool got_nothing =
        std::none_of(plan.sequences.begin(), plan.sequences.end(),
                     [&](const PlannedSequence& planned) { return planned.sequence == sequence; });
    if (got_nothing && !sequence->finished() && sequence->num_pending() > 1) return;
    add_wanted(sequence,
               std::min(groups_.blocks_for(sequence->num_tokens()) + 1,
                        groups_.blocks_for(worst_case(requests_[sequence->request_id()]))));
  }
  require(num_wanted > scheduler_.num_free_blocks());
}

}  // namespace pagoda::testing
