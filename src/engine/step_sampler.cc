#include "engine/step_sampler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "draw/drawn_token.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "ops/select_rows/select_rows.h"
#include "sampling/device/unread_values.h"
#include "sampling/host/sampler_state.h"
#include "tensor/op_profile.h"
#include "tensor/read_values.h"

namespace pagoda {
namespace {

// Calls visit(sequence, row, planned) for each sample that the plan draws, in the order of its
// outcomes. `row` is an index in the step's logits; samples of one prompt share a row.
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

void add_parts(const LogProbs& log_probs, std::vector<Tensor>& roots) {
  for (const Tensor& part : HostLogProbs::tensors_of(log_probs)) {
    if (part.defined()) roots.push_back(part);
  }
}

}  // namespace

StepSampler::StepSampler(Exec& exec, const Decoder& decoder, const StepSamplerOptions& options)
    : exec_(exec),
      decoder_(decoder),
      has_lookahead_(options.has_lookahead),
      has_processors_(!options.logits_processors.empty()),
      host_draws_(exec, decoder.config().vocab_size, decoder.config().eos_token_ids,
                  options.logits_processors, /*may_defer=*/!options.has_lookahead),
      row_masks_(decoder.config().vocab_size, decoder.config().eos_token_ids),
      row_changes_(decoder.config().vocab_size),
      row_penalties_(decoder.config().vocab_size) {}

void StepSampler::begin(const Plan& plan, StepRows& rows) {
  if (has_lookahead_) share_draws(plan, rows);
  if (!rows.waits_for_history) draw_rows(plan, rows);
}

bool StepSampler::is_drawn_by_ops(const Sequence& sequence) const {
  return has_lookahead_ && !has_processors_ && RowDraws::cover(sequence.params()) &&
         RowChanges::cover(sequence.params());
}

// Decides whether the host or ops draw a row, and when.
void StepSampler::share_draws(const Plan& plan, StepRows& rows) {
  int num_penalised = 0;
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence&) {
    if (!is_drawn_by_ops(sequence)) return;
    ++rows.num_by_ops;
    num_penalised += penalises(sequence.params()) ? 1 : 0;
  });
  const bool has_room = row_penalties_.has_room(num_penalised);
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence& planned) {
    if (planned.awaited_outcome < 0 || !is_drawn_by_ops(sequence)) return;
    rows.waits_for_history |= needs_history(sequence, planned.context_len(), has_room);
  });
  // Rows are scored and pooled in tiles at the step's end, and would wait for a step launched after
  // it.
  rows.draws_ahead = rows.num_by_ops == plan.num_samples && !rows.reads_hidden;
}

// Returns whether a draw by ops needs all of the sequence's tokens on the host, the last one too.
bool StepSampler::needs_history(const Sequence& sequence, int context_len, bool has_room) const {
  if (sequence.mask_source() != nullptr || RowChanges::look_back(sequence.params())) return true;
  return penalises(sequence.params()) &&
         !(has_room && row_penalties_.has_counted(sequence.arrival(), context_len));
}

Status StepSampler::draw(const Plan& plan, StepRows& rows) {
  if (!rows.waits_for_history) return ok_status();
  rows.waits_for_history = false;
  draw_rows(plan, rows);
  std::vector<Tensor> roots;
  add_roots(rows, roots);
  return exec_.evaluate(roots);
}

void StepSampler::draw_rows(const Plan& plan, StepRows& rows) {
  if (rows.num_by_ops == 0) return;
  row_draws_.clear();
  row_changes_.clear();
  row_penalties_.clear();
  row_masks_.clear();
  for_each_sample(plan, [&](Sequence& sequence, int, const PlannedSequence& planned) {
    add_row(sequence, planned.context_len(), rows);
  });
  prepare_penalties(plan, rows);
  const Tensor changed = row_changes_.apply(exec_, logits_of_outcomes(plan, rows.logits));
  rows.drawn = row_draws_.draw(exec_, row_penalties_.apply(exec_, changed));
  row_penalties_.count(exec_, rows.drawn);
  if (rows.draws_ahead) compute_log_probs(plan, rows);
}

void StepSampler::prepare_penalties(const Plan& plan, StepRows& rows) {
  const Status status = row_penalties_.prepare(exec_);
  if (status.ok()) return;
  std::size_t outcome = 0;
  for_each_sample(plan, [&](const Sequence& sequence, int, const PlannedSequence&) {
    if (penalises(sequence.params())) rows.row_errors[outcome] = status;
    ++outcome;
  });
}

// Computes log-probabilities for the outcomes that ask for them. Their tokens come from the device
// if it has drawn all of them, else from the host.
void StepSampler::compute_log_probs(const Plan& plan, StepRows& rows) {
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
  const Tensor drawn = rows.draws_ahead ? rows.drawn : upload_tokens();
  rows.log_probs =
      row_log_probs_.compute(exec_, rows.logits, resolve_tokens(exec_, source, source, drawn));
}

// Adds a row for ops to draw. For rows that ops do not cover, and for sequences that have ended
// while the step ran, the token is drawn greedily and not used.
void StepSampler::add_row(Sequence& sequence, int context_len, StepRows& rows) {
  RowSampling row = row_of(sequence, context_len, decoder_.config().eos_token_ids);
  const bool is_drawn = !sequence.finished() && is_drawn_by_ops(sequence);
  if (is_drawn) {
    const Result<std::span<const std::uint32_t>> mask = row_masks_.of(sequence);
    if (mask.ok()) row.mask = *mask;
    rows.row_errors.push_back(mask.status());
  } else {
    static const SamplingParams greedy = {.temperature = 0};
    row.params = &greedy;
    row.bans_stop_tokens = false;
    rows.row_errors.push_back(ok_status());
  }
  row_changes_.add(row);
  row_penalties_.add(*row.params, {.sequence = sequence.arrival(),
                                   .tokens = row.tokens,
                                   .num_prompt_tokens = row.num_prompt_tokens,
                                   .num_tokens = context_len});
  row_draws_.add(*row.params,
                 {.seed = row.seed, .sample_index = row.sample_index, .position = row.position});
}

// Gives each sample a row of its own.
Tensor StepSampler::logits_of_outcomes(const Plan& plan, const Tensor& logits) {
  if (logits.extent(0) == plan.num_samples) return logits;
  ids_.clear();
  for_each_sample(plan,
                  [&](const Sequence&, int row, const PlannedSequence&) { ids_.push_back(row); });
  return select_rows(exec_, logits, exec_.upload<std::int32_t>(ids_, {plan.num_samples}));
}

void StepSampler::add_roots(const StepRows& rows, std::vector<Tensor>& roots) const {
  for (const Tensor* part : {&rows.drawn, &row_penalties_.counts()}) {
    if (part->defined()) roots.push_back(*part);
  }
  add_parts(rows.log_probs, roots);
}

Tensor StepSampler::upload_tokens() {
  ids_.clear();
  for (const SampleOutcome& outcome : output_.outcomes) ids_.push_back(outcome.token_id);
  return exec_.upload<std::int32_t>(ids_, {static_cast<std::int64_t>(ids_.size())});
}

Result<const StepOutput*> StepSampler::sample(const Plan& plan, StepRows& rows, bool wants_logits) {
  PAGODA_CHECK(!rows.waits_for_history, "[sampler] a step is sampled before its rows are drawn");
  output_.outcomes.clear();
  output_.samples.clear();
  output_.of_sequence.resize(plan.sequences.size());
  for (SequenceOutput& output : output_.of_sequence) {
    output.scored.clear();
    output.score_error = ok_status();
    output.pooled.clear();
  }
  PAGODA_RETURN_IF_ERROR(score_rows(plan, rows));
  PAGODA_RETURN_IF_ERROR(pool_rows(plan, rows));
  rows.hidden = {};
  if (!rows.logits.defined()) return &output_;
  HostRows read;
  {
    const OpTimer timer(
        exec_, [&] { return OpCall{.op = "sample", .read_bytes = bytes_of(rows.logits)}; });
    PAGODA_ASSIGN_OR_RETURN(read, read_rows(rows, wants_logits));
    sample_rows(plan, rows, read);
  }
  if (!rows.draws_ahead) {
    compute_log_probs(plan, rows);
    if (rows.log_probs.chosen.defined()) {
      PAGODA_ASSIGN_OR_RETURN(read.log_probs, read_log_probs(rows.log_probs));
    }
  }
  if (read.log_probs) take_log_probs(*read.log_probs);
  return &output_;
}

// Waits for log-probabilities. The device may have computed them already, or starts now.
Result<HostLogProbs> StepSampler::read_log_probs(const LogProbs& log_probs) {
  std::vector<Tensor> roots;
  add_parts(log_probs, roots);
  PAGODA_RETURN_IF_ERROR(exec_.evaluate(roots));
  return HostLogProbs::read(exec_, log_probs);
}

Status StepSampler::score_rows(const Plan& plan, const StepRows& rows) {
  const std::size_t num_rows = rows.scored_rows.size();
  for (std::size_t first = 0; first < num_rows; first += kTileRows) {
    const std::size_t count = std::min<std::size_t>(kTileRows, num_rows - first);
    PAGODA_RETURN_IF_ERROR(score_tile(plan, rows, first, count));
  }
  return ok_status();
}

Status StepSampler::score_tile(const Plan& plan, const StepRows& rows, std::size_t first,
                               std::size_t count) {
  const auto scored_rows = std::span(rows.scored_rows).subspan(first, count);
  const auto tokens = std::span(rows.scored_tokens).subspan(first, count);
  const auto num_rows = static_cast<std::int64_t>(count);
  const Tensor logits =
      decoder_.logits(exec_, rows.hidden, exec_.upload<std::int32_t>(scored_rows, {num_rows}));
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
                          read_log_probs(row_log_probs_.compute(
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

Status StepSampler::pool_rows(const Plan& plan, const StepRows& rows) {
  int first_token = 0;  // the sequence's first token in the step
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& planned = plan.sequences[i];
    const bool pools = planned.sequence->pooling() != Pooling::kNone;
    for (int done = 0; pools && done < planned.num_read_rows; done += kTileRows) {
      const int num_rows = std::min(kTileRows, planned.num_read_rows - done);
      PAGODA_RETURN_IF_ERROR(pool_tile(rows, first_token + planned.first_read_row + done, num_rows,
                                       output_.of_sequence[i].pooled));
    }
    first_token += planned.num_new_tokens;
  }
  return ok_status();
}

// Appends the rows' hidden states after the checkpoint's last norm, without the logits' factor.
Status StepSampler::pool_tile(const StepRows& rows, int first_row, int num_rows,
                              std::vector<float>& pooled) {
  ids_.resize(num_rows);
  std::iota(ids_.begin(), ids_.end(), first_row);
  const Tensor hidden =
      decoder_.last_hidden(exec_, rows.hidden, exec_.upload<std::int32_t>(ids_, {num_rows}));
  const std::vector<Tensor> roots = {hidden};
  PAGODA_RETURN_IF_ERROR(exec_.evaluate(roots));
  PAGODA_ASSIGN_OR_RETURN(const std::span<const float> values, read_values<float>(exec_, hidden));
  const float factor = decoder_.config().logits_factor;
  for (const float value : values) pooled.push_back(value / factor);
  return ok_status();
}

// Reads the tokens and log-probabilities of the device in one packet. Reads logits only if the host
// needs them, because that transfers a row of the whole vocabulary.
Result<StepSampler::HostRows> StepSampler::read_rows(const StepRows& rows, bool wants_logits) {
  HostRows read;
  std::array<Tensor, 1 + HostLogProbs::kNumTensors> results = {rows.drawn};
  std::ranges::copy(HostLogProbs::tensors_of(rows.log_probs), results.begin() + 1);
  std::array<std::span<const std::byte>, results.size()> values;
  PAGODA_RETURN_IF_ERROR(exec_.read_packet(results, values));
  read.drawn = values_in<std::int32_t>(values[0]);
  if (rows.log_probs.chosen.defined())
    read.log_probs.emplace(rows.log_probs, std::span(values).last<HostLogProbs::kNumTensors>());
  if (wants_logits || !rows.draws_ahead) {
    PAGODA_ASSIGN_OR_RETURN(read.logits, read_values<float>(exec_, rows.logits));
  }
  return read;
}

void StepSampler::sample_rows(const Plan& plan, const StepRows& rows, const HostRows& read) {
  const auto vocab = static_cast<std::size_t>(decoder_.config().vocab_size);
  host_draws_.begin_step(output_.outcomes);
  for_each_sample(plan, [&](Sequence& sequence, int row, const PlannedSequence&) {
    const auto logits = read.logits.empty() ? read.logits : read.logits.subspan(row * vocab, vocab);
    output_.samples.push_back({.sequence = &sequence, .logits = logits});
    const std::size_t index = output_.outcomes.size();
    if (is_drawn_by_ops(sequence)) {
      take_drawn(read.drawn[index], rows.row_errors[index]);
    } else {
      host_draws_.add(sequence, logits);
    }
  });
  host_draws_.draw(plan.is_decode());
}

// Appends the outcome of a row that ops have drawn.
void StepSampler::take_drawn(std::int32_t drawn, const Status& row_error) {
  const Status status =
      row_error.ok() ? status_of_drawn(drawn, decoder_.config().vocab_size) : row_error;
  output_.outcomes.push_back({.token_id = status.ok() ? drawn : 0, .status = status});
}

void StepSampler::take_log_probs(const HostLogProbs& given) {
  int next = 0;
  for (std::size_t i = 0; i < output_.samples.size(); ++i) {
    const std::optional<int> num_top = output_.samples[i].sequence->params().logprobs;
    if (!num_top) continue;
    const SampleOutcome& outcome = output_.outcomes[i];
    Result<TokenLogprobs> logprobs = given.of(next++, outcome.token_id, *num_top);
    if (outcome.status.ok() && logprobs.ok()) output_.samples[i].logprobs = *std::move(logprobs);
  }
}

void StepSampler::call_ops(Exec& exec, const Tensor& logits) {
  RowChanges::call_ops(exec, logits);
  const Tensor drawn = RowDraws::call_ops(exec, logits);
  RowPenalties::call_ops(exec, logits, drawn);
  RowLogProbs::call_ops(exec, logits, drawn);
  resolve_tokens(exec, drawn, unread_integers(exec, logits.extent(0)), drawn);
}

}  // namespace pagoda
