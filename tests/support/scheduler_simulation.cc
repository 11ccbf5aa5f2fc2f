#include "tests/support/scheduler_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace pagoda::testing {

std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ (value + 1)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

namespace {

std::uint64_t start_hash(const std::string& cache_salt) {
  return hash_with(0xcbf29ce484222325u, cache_salt.size());
}

// Returns the next token of a sequence: a function of its tokens and its sample alone, as with a
// real model and a seed.
int next_token(std::uint64_t context, int sample_index) {
  return static_cast<int>((hash_with(context, 77 + sample_index) >> 8) %
                          SchedulerSimulation::kVocabSize);
}

struct Ending {
  std::vector<int> tokens;
  FinishReason reason = FinishReason::kNone;
};

// Runs the sequence alone, without scheduler or cache.
Ending run_alone(const GenerationRequest& request, int sample_index, int max_model_len) {
  const SamplingParams& params = request.sampling;
  Ending ending = {.tokens = request.prompt_token_ids, .reason = FinishReason::kLength};
  std::uint64_t hash = start_hash(request.cache_salt);
  for (const int token : ending.tokens) hash = hash_with(hash, token);
  const int room = max_model_len - static_cast<int>(request.prompt_token_ids.size());
  for (int i = 0; i < std::min(params.max_tokens, room); ++i) {
    const int token = next_token(hash, sample_index);
    hash = hash_with(hash, token);
    ending.tokens.push_back(token);
    const auto& stops = params.stop_token_ids;
    if ((token == SchedulerSimulation::kEos && !params.ignore_eos) ||
        std::find(stops.begin(), stops.end(), token) != stops.end()) {
      ending.reason = FinishReason::kStop;
      break;
    }
  }
  return ending;
}

}  // namespace

void require(bool holds, const std::source_location& place) {
  if (holds) return;
  throw std::logic_error(
      fmt::format("a promise of {} is broken: line {}", place.function_name(), place.line()));
}

SchedulerSimulation::SchedulerSimulation(const SimulationOptions& options)
    : options_(options),
      groups_(options.scheduler.block_size, options.scheduler.group_windows),
      pool_(options.num_blocks),
      random_(options.tier ? options.tier->seed : 0),
      tier_(options.tier ? std::optional<FakeBlockTier>(make_tier()) : std::nullopt),
      cache_(options.has_prefix_cache
                 ? std::optional<PrefixCache>(std::in_place, pool_, groups_, "simulated",
                                              tier_ ? &*tier_ : nullptr)
                 : std::nullopt),
      scheduler_(options.scheduler, pool_, cache_ ? &*cache_ : nullptr),
      slots_(static_cast<std::size_t>(options.num_blocks) * options.scheduler.block_size,
             kUnowned) {}

SchedulerSimulation::Sample SchedulerSimulation::sample_of(const Sequence& sequence) {
  return {sequence.request_id(), sequence.sample_index()};
}

SchedulerSimulation::Rank SchedulerSimulation::rank(const Sequence& sequence) {
  return {sequence.priority(), sequence.request_id(), sequence.sample_index()};
}

int SchedulerSimulation::worst_case(const GenerationRequest& request) const {
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  const int longest =
      std::min(num_prompt_tokens + request.sampling.max_tokens, options_.scheduler.max_model_len);
  return std::max(num_prompt_tokens, longest - 1);
}

void SchedulerSimulation::add(GenerationRequest request) {
  const auto id = static_cast<RequestId>(requests_.size());
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  if (scheduler_.check(num_prompt_tokens, request.sampling) != Admission::kAdmitted) {
    require(groups_.most_held(worst_case(request)) > pool_.num_blocks());
    return;
  }
  scheduler_.add({.id = id, .generation = request});
  for (int sample = 0; sample < request.sampling.n; ++sample) {
    waiting_.insert({request.priority, id, sample});
    lives_[{id, sample}] = {};
  }
  num_samples_ += request.sampling.n;
  requests_.push_back(std::move(request));
}

void SchedulerSimulation::cancel(unsigned choice) {
  if (lives_.empty()) return;
  auto life = lives_.lower_bound({choice % (requests_.size() + 1), 0});
  if (life == lives_.end()) --life;
  const auto [id, sample] = life->first;
  if (choice % 3 == 0) {
    scheduler_.cancel(id);
    for (int i = 0; i < requests_[id].sampling.n; ++i) disturbed_.insert({id, i});
  } else {
    scheduler_.cancel(id, sample);
    disturbed_.insert({id, sample});
  }
  collect();
  for (const Rank& rank : waiting_) require(disturbed_.count(sample_of(rank)) == 0);
}

void SchedulerSimulation::step(StepEvent event, unsigned choice) {
  ++num_steps_;
  if (tier_ && happens(options_.tier->forgotten)) tier_->forget_one();
  if (in_flight_.empty()) {
    note_before_plan();
    const Plan& plan = scheduler_.plan();
    note_turn();
    launch(plan, /*is_ahead=*/false);
  }
  const bool cancels = event == StepEvent::kCancelDuringStep;
  if (cancels && choice % 2 == 0) cancel(choice / 2);
  if (options_.has_lookahead && num_steps_ % 16 != 0) look_ahead();
  if (cancels && choice % 2 != 0) cancel(choice / 2);
  if (event == StepEvent::kFailStep) {
    fail_steps();
  } else {
    const Launched step = std::move(in_flight_.front());
    run(step, event == StepEvent::kFailRow);
    in_flight_.pop_front();
    scheduler_.commit(*step.plan, outcomes_, seconds_of(*step.plan));
  }
  collect();
  check_blocks();
}

void SchedulerSimulation::look_ahead() {
  note_before_plan();
  const Plan* const plan = scheduler_.plan_ahead();
  note_turn();
  if (plan == nullptr) return;
  require(!plan->empty());
  ++num_steps_ahead_;
  launch(*plan, /*is_ahead=*/true);
  check_order(in_flight_.front(), in_flight_.back());
}

void SchedulerSimulation::launch(const Plan& plan, bool is_ahead) {
  check_plan(plan, is_ahead);
  Launched step = {.plan = &plan, .is_ahead = is_ahead};
  for (const PlannedSequence& planned : plan.sequences) {
    Tables& tables = step.tables.emplace_back();
    for (int group = 0; group < num_groups(); ++group) {
      const auto table = planned.sequence->block_table(group);
      tables.emplace_back(table.begin(), table.end());
    }
    lives_.at(sample_of(*planned.sequence)).num_run = planned.context_len();
  }
  in_flight_.push_back(std::move(step));
}

// Fails the first step in flight, and the step after it too.
void SchedulerSimulation::fail_steps() {
  for (const Launched& step : in_flight_) {
    for (const PlannedSequence& planned : step.plan->sequences) {
      if (planned.sequence->finished()) continue;
      disturb(*planned.sequence);
      for (const auto& fork : planned.sequence->forks()) disturb(*fork);
    }
  }
  for (const Launched& step : in_flight_) {
    if (!step.plan->empty()) scheduler_.fail(*step.plan, internal_error("step"));
  }
  in_flight_.clear();
}

void SchedulerSimulation::finish() {
  // Every step computes at least one token of the first sequence. Preempted sequences start again,
  // but the first one is never preempted. So this many steps are enough.
  std::uint64_t limit = 8;
  for (const auto& [sample, life] : lives_) {
    const GenerationRequest& request = requests_[sample.first];
    limit += 3 * (request.prompt_token_ids.size() + request.sampling.max_tokens);
  }
  while (!scheduler_.idle()) {
    require(limit > 0u);
    step(StepEvent::kNone, 0);
    if (num_steps_without_plan_ == 0) --limit;
  }
  require(in_flight_.empty());
  require(scheduler_.plan().empty());
  require(scheduler_.num_free_blocks() == pool_.num_blocks());
  require(num_ended_ == num_samples_);
  require(!tier_ || tier_->num_fetches() == 0u);
}

void SchedulerSimulation::copy_blocks(const Plan& plan) {
  std::set<int> sources, destinations;
  const int block_size = options_.scheduler.block_size;
  for (const PlannedCopy& copy : plan.block_copies) {
    require(0 < copy.num_tokens && copy.num_tokens <= block_size);
    require(destinations.insert(copy.destination).second);
    sources.insert(copy.source);
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(copy.source) * block_size,
                copy.num_tokens,
                slots_.begin() + static_cast<std::ptrdiff_t>(copy.destination) * block_size);
  }
  for (const int block : destinations) require(sources.count(block) == 0);
}

std::uint64_t SchedulerSimulation::start_hash(const Sequence& sequence) const {
  return testing::start_hash(requests_[sequence.request_id()].cache_salt);
}

// Returns the last entry of each full block that is cached.
std::set<std::uint64_t> SchedulerSimulation::cached_ends() const {
  std::set<std::uint64_t> ends;
  const int block_size = options_.scheduler.block_size;
  for (int block = 0; block < pool_.num_blocks(); ++block) {
    if (cache_->is_cached(block) && cache_->is_full(block))
      ends.insert(slots_[static_cast<std::size_t>(block + 1) * block_size - 1]);
  }
  return ends;
}

// Returns the hash of each of the sequence's first `num_tokens` prefixes.
std::vector<std::uint64_t> SchedulerSimulation::hashes_of(const Sequence& sequence,
                                                          int num_tokens) const {
  std::vector<std::uint64_t> hashes;
  std::uint64_t hash = start_hash(sequence);
  for (int p = 0; p < num_tokens; ++p) {
    hash = hash_with(hash, sequence.token(p));
    hashes.push_back(hash);
  }
  return hashes;
}

// Returns the length of the longest prefix of whole blocks that is cached: all blocks that a query
// at its end reads are cached.
int SchedulerSimulation::longest_cached(const Sequence& sequence, int num_readable) const {
  const std::set<std::uint64_t> cached = cached_ends();
  const std::vector<std::uint64_t> hashes = hashes_of(sequence, num_readable);
  const int block_size = options_.scheduler.block_size;
  for (int end = num_readable / block_size; end > 0; --end) {
    bool has_all = true;
    for (int group = 0; group < num_groups(); ++group) {
      for (int i = first_read(group, end * block_size) / block_size; i < end; ++i)
        has_all &= cached.count(entry_of(hashes[(i + 1) * block_size - 1], group)) > 0;
    }
    if (has_all) return end * block_size;
  }
  return 0;
}

// Checks where an admitted sequence starts: after all its full blocks that are cached.
void SchedulerSimulation::check_admitted(const PlannedSequence& planned) {
  const Sequence& sequence = *planned.sequence;
  Life& life = lives_.at(sample_of(sequence));
  require(planned.first_position < sequence.num_tokens());
  require(sequence.num_cached_tokens() < sequence.num_prompt_tokens());
  life.num_run = planned.first_position;
  if (!cache_) return require(planned.first_position == 0);
  if (cache_->counters().num_evicted_blocks != num_evicted_) return;
  int num_readable = sequence.num_tokens() - 1;
  if (life.num_read < num_rows_to_read(sequence)) {
    num_readable = std::min(num_readable, first_row_to_read(sequence) + life.num_read);
    require(planned.first_position <= num_readable);
  }
  // Blocks that arrived from the tier at the plan's beginning are included.
  const int num_cached = longest_cached(sequence, num_readable);
  require(planned.first_position >= num_cached);
  require(planned.first_position < num_cached + options_.scheduler.block_size);
}

// Returns the token at a position: the sequence's, or the token that the previous step has sampled.
int SchedulerSimulation::token_at(const PlannedSequence& planned, int position) const {
  const Sequence& sequence = *planned.sequence;
  if (position != planned.first_position || planned.awaited_outcome < 0)
    return sequence.token(position);
  const int token_id = outcomes_[planned.awaited_outcome].token_id;
  require(position == sequence.num_tokens() || sequence.token(position) == token_id);
  return token_id;
}

void SchedulerSimulation::write(const Launched& step) {
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    const PlannedSequence& planned = step.plan->sequences[i];
    std::uint64_t hash = start_hash(*planned.sequence);
    for (int p = 0; p < planned.context_len(); ++p) {
      hash = hash_with(hash, token_at(planned, p));
      for (int group = 0; p >= planned.first_position && group < num_groups(); ++group)
        slots_[slot(step.tables[i][group], p)] = entry_of(hash, group);
    }
  }
}

// Checks the entries that the chunk reads; returns the whole context's hash.
std::uint64_t SchedulerSimulation::read_back(const PlannedSequence& planned, const Tables& tables) {
  std::uint64_t hash = start_hash(*planned.sequence);
  for (int p = 0; p < planned.context_len(); ++p) {
    hash = hash_with(hash, token_at(planned, p));
    for (int group = 0; group < num_groups(); ++group) {
      if (p < first_read(group, planned.first_position)) continue;
      require(slots_[slot(tables[group], p)] == entry_of(hash, group));
    }
  }
  return hash;
}

// Returns whether the draw is deferred: an eighth of the draws that may be.
bool SchedulerSimulation::is_late(const PlannedSequence& planned) const {
  const Sequence& sequence = *planned.sequence;
  return !options_.has_lookahead && sequence.num_output_tokens() > 0 && !sequence.finished() &&
         hash_with(start_hash(sequence), static_cast<int>(num_steps_)) % 8 == 0;
}

// Writes the chunks into the cache, reads every context back through its table, and samples.
void SchedulerSimulation::run(const Launched& step, bool fail_first_row) {
  copy_blocks(*step.plan);
  write(step);
  std::vector<SampleOutcome> outcomes;
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    const PlannedSequence& planned = step.plan->sequences[i];
    const Sequence& sequence = *planned.sequence;
    const std::uint64_t hash = read_back(planned, step.tables[i]);
    if (!planned.samples) continue;
    outcomes.push_back({.token_id = next_token(hash, sequence.sample_index())});
    if (fail_first_row && outcomes.size() == 1) {
      outcomes[0].status = internal_error("row");
      if (!sequence.finished()) disturb(sequence);
    } else if (is_late(planned)) {
      outcomes.back().is_deferred = true;
      lives_.at(sample_of(sequence)).num_run = planned.context_len() - 1;
    }
    for (const auto& fork : sequence.forks()) {
      outcomes.push_back({.token_id = next_token(hash, fork->sample_index())});
      lives_.at(sample_of(*fork)).num_run = planned.context_len();
      require(with_others_.erase(rank(*fork)) == 1);
      running_[rank(*fork)] = fork.get();
    }
  }
  outcomes_ = std::move(outcomes);
}

void SchedulerSimulation::collect() {
  const auto finished = scheduler_.take_finished();
  for (const auto& sequence : finished) {
    const Sample sample = sample_of(*sequence);
    require(waiting_.erase(rank(*sequence)) + running_.erase(rank(*sequence)) +
                with_others_.erase(rank(*sequence)) ==
            1u);
    require(sequence->block_table().empty());
    const GenerationRequest& request = requests_[sample.first];
    const Ending alone = run_alone(request, sample.second, options_.scheduler.max_model_len);
    const auto tokens = sequence->tokens();
    if (disturbed_.erase(sample) == 0) {
      require(sequence->finish_reason() == alone.reason);
      require(tokens.size() == alone.tokens.size());
      require(lives_.at(sample).num_read == num_rows_to_read(*sequence));
    }
    require(tokens.size() <= alone.tokens.size());
    require(std::equal(tokens.begin(), tokens.end(), alone.tokens.begin()));
    ++num_ended_;
  }
  for (const auto& sequence : finished) go_on_instead_of(*sequence);
  for (const auto& sequence : finished) require(lives_.erase(sample_of(*sequence)) == 1u);
}

// Lets the next sequence that waited with this one take its place, if this one ended before its
// prompt was computed.
void SchedulerSimulation::go_on_instead_of(const Sequence& sequence) {
  const auto first = first_of_.find(sequence.request_id());
  if (first == first_of_.end() || first->second != rank(sequence)) return;
  for (const auto& [other, waiting] : with_others_) {
    if (waiting->request_id() != sequence.request_id()) continue;
    lives_.at(sample_of(*waiting)).num_run = lives_.at(sample_of(sequence)).num_run;
    first->second = other;
    running_[other] = waiting;
    with_others_.erase(other);
    return;
  }
  first_of_.erase(first);
}

}  // namespace pagoda::testing
