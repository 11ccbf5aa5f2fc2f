#include "engine/model_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "backend/parallel_for.h"
#include "ops/argmax/argmax.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "ops/select_rows/select_rows.h"
#include "tensor/op_profile.h"
#include "tensor/read_values.h"
#include "tensor/upload_list.h"

namespace pagoda {
namespace {

// Requests of up to as many tokens do not wait for memory: a long one, or as many as take so many
// bytes.
constexpr std::int64_t kMostPrefaultedTokens = 8192, kLeastPrefaultedTokens = 1024;
constexpr std::int64_t kMostPrefaultedBytes = 256 << 20;
constexpr std::int64_t kPartsOfPrefaulted = 8;  // one of them is what is needed soon

// The time that a step's rows wait for their masks, all together, and how much longer where none of
// them has one.
constexpr std::chrono::milliseconds kMaskPatience(10), kMorePatience(90);

std::int64_t num_prefaulted_tokens(const KvLayout& layout) {
  return std::clamp(kMostPrefaultedBytes / layout.bytes_per_token(), kLeastPrefaultedTokens,
                    kMostPrefaultedTokens);
}

// Calls visit(sequence, row, planned) for each sample that the plan draws, in the order of its
// outcomes; `row`: of the step's logits, which samples of one prompt share.
template <typename Visit>
void for_each_sample(const Plan& plan, const Visit& visit) {
  int row = 0;
  for (const PlannedSequence& planned : plan.sequences) {
    if (!planned.samples) continue;
    visit(*planned.sequence, row, planned);
    for (const std::unique_ptr<Sequence>& fork : planned.sequence->forks())
      visit(*fork, row, planned);
    ++row;
  }
}

}  // namespace

ModelRunner::ModelRunner(Exec& exec, Decoder decoder, KvStore kv, ModelRunnerOptions options)
    : exec_(exec),
      decoder_(std::move(decoder)),
      kv_(std::move(kv)),
      num_prefaulted_tokens_(num_prefaulted_tokens(kv_.layout())),
      options_(std::move(options)),
      row_masks_(decoder_.config().vocab_size, decoder_.config().eos_token_ids),
      row_changes_(decoder_.config().vocab_size),
      row_penalties_(decoder_.config().vocab_size),
      input_(kv_.block_size()) {
  for (int thread = 0; thread < exec.num_threads(); ++thread)
    samplers_.emplace_back(decoder_.config().vocab_size, options_.logits_processors);
}

bool ModelRunner::prefault(int first_block, bool beside_prompts) {
  return kv_.prefault(
      exec_, std::int64_t{first_block} * kv_.block_size(),
      beside_prompts ? num_prefaulted_tokens_ / kPartsOfPrefaulted : num_prefaulted_tokens_);
}

RunnerStats ModelRunner::stats() const {
  const StepInputCounters& input = input_.counters();
  return {.num_evaluations = exec_.num_evaluations(),
          .num_contiguous_steps = input.num_contiguous_steps,
          .num_paged_steps = input.num_paged_steps,
          .num_step_words = input.num_words,
          .num_logits_rows = num_logits_rows_,
          .num_logits_rows_skipped = num_logits_rows_skipped_,
          .weight_bytes_per_step = decoder_.num_weight_bytes(),
          .kv_bytes_per_token = kv_.layout().bytes_per_token()};
}

Status ModelRunner::forward(const Plan& plan) {
  if (OpProfile* profile = exec_.profile())
    profile->begin_step(plan.is_decode() ? StepPhase::kDecode : StepPhase::kPrefill);
  const HostBatch& host = input_.set(plan);
  Step& step = start_step();
  StepBatch batch = input_.upload(exec_);
  if (batch.token_source.defined()) fill_token_ids(batch);
  if (!host.block_copies.empty()) copy_blocks(batch);
  step.hidden = decoder_.forward(exec_, batch, kv_);
  if (batch.num_rows > 0) step.logits = decoder_.logits(exec_, step.hidden, batch.logits_rows);
  const std::uint64_t projected = host.logits_rows.size() + step.scored_rows.size();
  num_logits_rows_ += projected;
  num_logits_rows_skipped_ += static_cast<std::uint64_t>(host.num_tokens()) - projected;
  if (options_.has_lookahead) share_draws(plan, step);
  if (!step.waits_for_history) draw_rows(plan, step);
  Status status = evaluate(step);
  step.in_flight = status.ok();
  if (step.scored_rows.empty()) step.hidden = {};
  return status;
}

// With lookahead in turns: the step before still has its results.
ModelRunner::Step& ModelRunner::start_step() {
  if (options_.has_lookahead) newest_ = 1 - newest_;
  Step& step = steps_[newest_];
  step.in_flight = step.draws_ahead = step.waits_for_history = false;
  step.num_by_ops = 0;
  step.row_errors.clear();
  step.hidden = {};
  step.logits = {};
  step.drawn = {};
  step.log_probs = {};
  step.scored_rows.assign(input_.scored_rows().begin(), input_.scored_rows().end());
  step.scored_tokens.assign(input_.scored_tokens().begin(), input_.scored_tokens().end());
  return step;
}

// From the step before, whose tokens are on the device, or with its outcomes on the host.
void ModelRunner::fill_token_ids(StepBatch& batch) {
  const Step& before = steps_[1 - newest_];
  Tensor drawn = before.drawn;
  if (!before.in_flight) drawn = upload_outcomes();
  batch.token_ids = resolve_tokens(exec_, batch.token_ids, batch.token_source, drawn);
}

// The tokens of the outcomes on the host: [outcomes] int32
Tensor ModelRunner::upload_outcomes() {
  ids_.clear();
  for (const SampleOutcome& outcome : output_.outcomes) ids_.push_back(outcome.token_id);
  return upload_list(exec_, ids_);
}

void ModelRunner::copy_blocks(const StepBatch& batch) {
  for (int layer = 0; layer < kv_.num_layers(); ++layer)
    kv_.rebind(layer, kv_copy_blocks(exec_, kv_.view(layer), batch));
}

bool ModelRunner::is_drawn_by_ops(const Sequence& sequence) const {
  return options_.has_lookahead && options_.logits_processors.empty() &&
         RowDraws::cover(sequence.params()) && RowChanges::cover(sequence.params());
}

// Who draws which row, and when.
void ModelRunner::share_draws(const Plan& plan, Step& step) {
  step.num_by_ops = 0;
  int num_penalised = 0;
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence&) {
    if (!is_drawn_by_ops(sequence)) return;
    ++step.num_by_ops;
    num_penalised += penalises(sequence.params()) ? 1 : 0;
  });
  const bool has_room = row_penalties_.has_room(num_penalised);
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence& planned) {
    if (planned.awaited_outcome < 0 || !is_drawn_by_ops(sequence)) return;
    step.waits_for_history |= needs_history(sequence, planned.context_len(), has_room);
  });
  // Rows are scored in tiles, which would have to wait for a step behind.
  step.draws_ahead = step.num_by_ops == plan.num_samples && step.scored_rows.empty();
}

// On the host, to its end.
bool ModelRunner::needs_history(const Sequence& sequence, int context_len, bool has_room) const {
  if (sequence.mask_source() != nullptr || RowChanges::look_back(sequence.params())) return true;
  return penalises(sequence.params()) &&
         !(has_room && row_penalties_.has_counted(sequence.arrival(), context_len));
}

Status ModelRunner::draw(const Plan& plan) {
  Step& step = steps_[newest_];
  if (!step.waits_for_history) return ok_status();
  step.waits_for_history = false;
  draw_rows(plan, step);
  roots_.clear();
  add_draws(step);
  return exec_.evaluate(roots_);
}

void ModelRunner::draw_rows(const Plan& plan, Step& step) {
  if (step.num_by_ops == 0) return;
  row_draws_.clear();
  row_changes_.clear();
  row_penalties_.clear();
  row_masks_.clear();
  for_each_sample(plan, [&](Sequence& sequence, int, const PlannedSequence& planned) {
    add_row(sequence, planned.context_len(), step);
  });
  prepare_penalties(plan, step);
  const Tensor changed = row_changes_.apply(exec_, logits_of_outcomes(plan, step.logits));
  step.drawn = row_draws_.draw(exec_, row_penalties_.apply(exec_, changed));
  row_penalties_.count(exec_, step.drawn);
  if (step.draws_ahead) compute_log_probs(plan, step);
}

void ModelRunner::prepare_penalties(const Plan& plan, Step& step) {
  const Status status = row_penalties_.prepare(exec_);
  if (status.ok()) return;
  std::size_t outcome = 0;
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence&) {
    if (penalises(sequence.params())) step.row_errors[outcome] = status;
    ++outcome;
  });
}

// Of the outcomes that ask: of their tokens where the device has drawn them, else on the host.
void ModelRunner::compute_log_probs(const Plan& plan, Step& step) {
  row_log_probs_.clear();
  ids_.clear();
  std::int32_t outcome = 0;
  for_each_sample(plan, [&](const Sequence& sequence, int row, const PlannedSequence&) {
    if (sequence.params().logprobs) {
      row_log_probs_.add(row, *sequence.params().logprobs);
      ids_.push_back(outcome);
    }
    ++outcome;
  });
  if (ids_.empty()) return;
  const Tensor source = exec_.upload<std::int32_t>(ids_, {row_log_probs_.num_rows()});
  const Tensor drawn = step.draws_ahead ? step.drawn : upload_outcomes();
  step.log_probs =
      row_log_probs_.compute(exec_, step.logits, resolve_tokens(exec_, source, source, drawn));
}

// Of one that ops do not draw, or that has ended while the step ran, nobody looks at the token.
void ModelRunner::add_row(Sequence& sequence, int context_len, Step& step) {
  RowSampling row = row_of(sequence, context_len);
  const bool is_drawn = !sequence.finished() && is_drawn_by_ops(sequence);
  if (is_drawn) {
    const Result<std::span<const std::uint32_t>> mask = row_masks_.of(sequence);
    if (mask.ok()) row.mask = *mask;
    step.row_errors.push_back(mask.status());
  } else {
    static const SamplingParams greedy = {.temperature = 0};
    row.params = &greedy;
    row.bans_stop_tokens = false;
    step.row_errors.push_back(ok_status());
  }
  row_changes_.add(row);
  row_penalties_.add(*row.params, {.sequence = sequence.arrival(),
                                   .tokens = row.tokens,
                                   .num_prompt_tokens = row.num_prompt_tokens,
                                   .num_tokens = context_len});
  row_draws_.add(*row.params,
                 {.seed = row.seed, .sample_index = row.sample_index, .position = row.position});
}

RowSampling ModelRunner::row_of(const Sequence& sequence, int context_len) const {
  const SamplingParams& params = sequence.params();
  return {.params = &params,
          .bans_stop_tokens = context_len - sequence.num_prompt_tokens() < params.min_tokens,
          .eos_token_ids = decoder_.config().eos_token_ids,
          .tokens = sequence.tokens(),
          .num_prompt_tokens = sequence.num_prompt_tokens(),
          .seed = sequence.seed(),
          .sample_index = sequence.sample_index(),
          .position = context_len};
}

// Null where the parameters ask for none.
SamplerState* ModelRunner::synced_state(Sequence& sequence) {
  if (SamplerState::is_needed(sequence.params()) && !sequence.sampler_state())
    sequence.set_sampler_state(
        std::make_shared<SamplerState>(sequence.params(), sequence.max_num_tokens()));
  SamplerState* const state = sequence.sampler_state().get();
  if (state != nullptr) state->sync(sequence.tokens(), sequence.num_prompt_tokens());
  return state;
}

// A row for each sample that draws from it.
Tensor ModelRunner::logits_of_outcomes(const Plan& plan, const Tensor& logits) {
  if (logits.extent(0) == plan.num_samples) return logits;
  ids_.clear();
  for_each_sample(plan,
                  [&](const Sequence&, int row, const PlannedSequence&) { ids_.push_back(row); });
  return select_rows(exec_, logits, exec_.upload<std::int32_t>(ids_, {plan.num_samples}));
}

// One evaluation: the logits, what is drawn from them and every KV array written, by chunks that
// sample nothing too; where rows are scored the hidden state as well, from which the tiles are
// projected one by one.
Status ModelRunner::evaluate(const Step& step) {
  roots_.clear();
  if (step.logits.defined()) roots_.push_back(step.logits);
  add_draws(step);
  if (!step.scored_rows.empty()) {
    roots_.push_back(step.hidden.residual);
    roots_.push_back(step.hidden.delta);
  }
  for (const KvView& view : kv_.views()) {
    roots_.push_back(view.keys);
    roots_.push_back(view.values);
  }
  Status status = exec_.evaluate(roots_);
  roots_.clear();
  return status;
}

// To the roots: what draws make, and what they write.
void ModelRunner::add_draws(const Step& step) {
  for (const Tensor* part : {&step.drawn, &row_penalties_.counts()}) {
    if (part->defined()) roots_.push_back(*part);
  }
  add_roots(step.log_probs);
}

void ModelRunner::add_roots(const LogProbs& log_probs) {
  for (const Tensor* part :
       {&log_probs.chosen, &log_probs.rank, &log_probs.top_ids, &log_probs.top_logprobs}) {
    if (part->defined()) roots_.push_back(*part);
  }
}

Result<const StepOutput*> ModelRunner::sample(const Plan& plan, bool wants_logits) {
  Step& before = steps_[1 - newest_];
  Step& step = before.in_flight ? before : steps_[newest_];
  output_.outcomes.clear();
  output_.samples.clear();
  output_.of_sequence.resize(plan.sequences.size());
  for (SequenceOutput& output : output_.of_sequence) {
    output.scored.clear();
    output.score_error = ok_status();
  }
  PAGODA_CHECK(!step.waits_for_history, "[runner] a step is sampled before its rows are drawn");
  PAGODA_RETURN_IF_ERROR(score_rows(plan, step));
  step.hidden = {};
  PAGODA_RETURN_IF_ERROR(sample_rows(plan, step, wants_logits));
  PAGODA_RETURN_IF_ERROR(take_log_probs(plan, step));
  step.in_flight = false;
  if (OpProfile* profile = exec_.profile()) profile->end_step();
  return &output_;
}

// Steps write the last layer's values at their ends, one after another.
void ModelRunner::abandon() {
  for (Step& step : steps_) step = {};
  row_penalties_.forget();
  const Result<std::span<const std::byte>> end = exec_.read(kv_.views().back().values);
  if (!end.ok()) spdlog::debug("[engine] a step that was given up: {}", end.status().message());
}

// The device may have them already, or starts on them now.
Result<HostLogProbs> ModelRunner::log_probs_on_host(const LogProbs& log_probs) {
  roots_.clear();
  add_roots(log_probs);
  PAGODA_RETURN_IF_ERROR(exec_.evaluate(roots_));
  return HostLogProbs::read(exec_, log_probs);
}

Status ModelRunner::score_rows(const Plan& plan, const Step& step) {
  const std::size_t num_rows = step.scored_rows.size();
  for (std::size_t first = 0; first < num_rows; first += kScoreTileRows) {
    const std::size_t count = std::min<std::size_t>(kScoreTileRows, num_rows - first);
    PAGODA_RETURN_IF_ERROR(score_tile(plan, step, first, count));
  }
  return ok_status();
}

Status ModelRunner::score_tile(const Plan& plan, const Step& step, std::size_t first,
                               std::size_t count) {
  const auto rows = std::span(step.scored_rows).subspan(first, count);
  const auto tokens = std::span(step.scored_tokens).subspan(first, count);
  const auto num_rows = static_cast<std::int64_t>(count);
  const Tensor logits =
      decoder_.logits(exec_, step.hidden, exec_.upload<std::int32_t>(rows, {num_rows}));
  const auto num_top_of = [&](const ScoredToken& token) {
    return plan.sequences[token.sequence].sequence->params().prompt_logprobs.value_or(0);
  };
  row_log_probs_.clear();
  ids_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    row_log_probs_.add(static_cast<int>(i), num_top_of(tokens[i]));
    ids_.push_back(tokens[i].token_id);
  }
  PAGODA_ASSIGN_OR_RETURN(const HostLogProbs scores,
                          log_probs_on_host(row_log_probs_.compute(
                              exec_, logits, exec_.upload<std::int32_t>(ids_, {num_rows}))));
  for (std::size_t i = 0; i < count; ++i) {
    SequenceOutput& output = output_.of_sequence[tokens[i].sequence];
    Result<TokenLogprobs> score =
        scores.of(static_cast<int>(i), tokens[i].token_id, num_top_of(tokens[i]));
    if (score.ok()) {
      output.scored.push_back(*std::move(score));
    } else {
      output.score_error = score.status();
    }
  }
  return ok_status();
}

// Logits only where somebody needs them: on a device they are a trip of the whole vocabulary.
Result<ModelRunner::Rows> ModelRunner::read_rows(const Step& step, bool wants_logits) {
  Rows rows;
  if (step.drawn.defined()) {
    PAGODA_ASSIGN_OR_RETURN(rows.drawn, read_values<std::int32_t>(exec_, step.drawn));
  }
  if (wants_logits || !step.draws_ahead) {
    PAGODA_ASSIGN_OR_RETURN(rows.logits, read_values<float>(exec_, step.logits));
  }
  return rows;
}

Status ModelRunner::sample_rows(const Plan& plan, const Step& step, bool wants_logits) {
  if (!step.logits.defined()) return ok_status();
  const OpTimer timer(exec_,
                      [&] { return OpCall{.op = "sample", .read_bytes = bytes_of(step.logits)}; });
  PAGODA_ASSIGN_OR_RETURN(const Rows rows, read_rows(step, wants_logits));
  const auto vocab = static_cast<std::size_t>(decoder_.config().vocab_size);
  host_rows_.clear();
  rows_without_mask_.clear();
  row_masks_.clear();
  mask_deadline_ = Clock::system().now() + kMaskPatience;
  for_each_sample(plan, [&](Sequence& sequence, int row, const PlannedSequence&) {
    const auto logits = rows.logits.empty() ? rows.logits : rows.logits.subspan(row * vocab, vocab);
    output_.samples.push_back({.sequence = &sequence, .logits = logits});
    const std::size_t index = output_.outcomes.size();
    if (is_drawn_by_ops(sequence)) {
      take_drawn(rows.drawn[index], step.row_errors[index]);
    } else {
      add_host_row(sequence, logits);
    }
  });
  wait_for_masks(plan);
  draw_host_rows();
  return ok_status();
}

// What ops have drawn for the last of the samples.
void ModelRunner::take_drawn(std::int32_t drawn, const Status& row_error) {
  const Status status =
      row_error.ok() ? status_of_drawn(drawn, decoder_.config().vocab_size) : row_error;
  output_.outcomes.push_back({.token_id = status.ok() ? drawn : 0, .status = status});
}

Status ModelRunner::take_log_probs(const Plan& plan, Step& step) {
  if (!step.draws_ahead) compute_log_probs(plan, step);
  if (!step.log_probs.chosen.defined()) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const HostLogProbs given, log_probs_on_host(step.log_probs));
  int next = 0;
  for (std::size_t i = 0; i < output_.samples.size(); ++i) {
    const std::optional<int> num_top = output_.samples[i].sequence->params().logprobs;
    if (!num_top) continue;
    const SampleOutcome& outcome = output_.outcomes[i];
    Result<TokenLogprobs> logprobs = given.of(next++, outcome.token_id, *num_top);
    if (outcome.status.ok() && logprobs.ok()) output_.samples[i].logprobs = *std::move(logprobs);
  }
  return ok_status();
}

// The host draws the last of the samples. A sequence that has ended while the step ran draws
// nothing: its state is what it was at its end.
void ModelRunner::add_host_row(Sequence& sequence, std::span<const float> logits) {
  output_.outcomes.emplace_back();
  if (sequence.finished()) return;
  RowSampling row = row_of(sequence, sequence.num_tokens());
  row.logits = logits;
  row.state = synced_state(sequence);
  const HostRow host_row = {
      .outcome = output_.outcomes.size() - 1, .sequence = &sequence, .sampling = row};
  if (!may_defer(sequence)) return take_mask(host_row);
  // A mask that seems near may take long nevertheless: then it delays this step, and no other does.
  TokenMaskSource& source = *sequence.mask_source();
  const bool is_near = source.is_mask_near() && Clock::system().now() < mask_deadline_;
  if (is_near || source.wait_for_mask(/*deadline=*/{})) return take_mask(host_row);
  rows_without_mask_.push_back(host_row);
}

// A sequence's first token has a mask that is there from the start.
bool ModelRunner::may_defer(const Sequence& sequence) const {
  return sequence.mask_source() != nullptr && !options_.has_lookahead &&
         sequence.num_output_tokens() > 0;
}

void ModelRunner::take_mask(HostRow row) {
  const Result<std::span<const std::uint32_t>> mask = row_masks_.of(*row.sequence);
  if (!mask.ok()) {
    output_.outcomes[row.outcome].status = mask.status();
    return;
  }
  row.sampling.mask = *mask;
  host_rows_.push_back(row);
}

// Until the deadline, or longer where nothing else comes of the step: only who comes anew waits.
void ModelRunner::wait_for_masks(const Plan& plan) {
  const bool is_all = plan.is_decode() && rows_without_mask_.size() == output_.outcomes.size();
  const auto deadline = is_all ? mask_deadline_ + kMorePatience : mask_deadline_;
  for (const HostRow& row : rows_without_mask_) {
    if (row.sequence->mask_source()->wait_for_mask(deadline)) {
      take_mask(row);
    } else {
      output_.outcomes[row.outcome].is_deferred = true;
    }
  }
}

void ModelRunner::draw_host_rows() {
  const auto draw = [this](std::int64_t i, int thread) {
    const Result<int> token = samplers_[thread].sample(host_rows_[i].sampling);
    output_.outcomes[host_rows_[i].outcome] = {.token_id = token.ok() ? *token : 0,
                                               .status = token.status()};
  };
  const auto num_rows = static_cast<std::int64_t>(host_rows_.size());
  if (options_.logits_processors.empty()) {
    parallel_for(exec_, num_rows, draw);
  } else {  // which are this thread's
    for (std::int64_t i = 0; i < num_rows; ++i) draw(i, 0);
  }
}

}  // namespace pagoda
