#include "sampling/device/row_penalties.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "ops/apply_penalties/apply_penalties.h"
#include "ops/count_tokens/count_tokens.h"
#include "sampling/device/unread_values.h"
#include "sampling/host/sampler_state.h"
#include "sampling/penalty_window.h"
#include "sampling/seen_tokens.h"
#include "tensor/upload_packet.h"

namespace pagoda {

RowPenalties::RowPenalties(int vocab_size) : vocab_size_(vocab_size) {}

bool RowPenalties::has_counted(std::uint64_t sequence, int num_tokens) const {
  const auto found = histogram_of_sequence_.find(sequence);
  return found != histogram_of_sequence_.end() &&
         histograms_[found->second].num_tokens == num_tokens;
}

void RowPenalties::clear() {
  rows_.clear();
  histogram_of_.clear();
  num_penalised_ = 0;
}

void RowPenalties::add(const SamplingParams& params, const History& history) {
  const bool is_penalised = penalises(params);
  rows_.push_back({.params = is_penalised ? &params : nullptr, .history = history});
  histogram_of_.push_back(-1);
  num_penalised_ += is_penalised ? 1 : 0;
}

Status RowPenalties::prepare(Exec& exec) {
  if (!is_penalised()) return ok_status();
  if (!has_room(num_penalised_)) {
    Status status = make_room(exec);
    if (!status.ok()) {
      num_penalised_ = 0;
      return status;
    }
  }
  ++step_;
  find_histograms();
  update(exec);
  return ok_status();
}

Status RowPenalties::make_room(Exec& exec) {
  const std::size_t wanted =
      std::max({static_cast<std::size_t>(num_penalised_), 2 * histograms_.size(), std::size_t{4}});
  forget();
  if (wanted * vocab_size_ > std::numeric_limits<std::int32_t>::max()) {
    return resource_exhausted("[penalties] {} rows of {} tokens at once are more than {} counts",
                              num_penalised_, vocab_size_,
                              std::numeric_limits<std::int32_t>::max());
  }
  PAGODA_ASSIGN_OR_RETURN(
      counts_,
      exec.allocate_persistent(DType::kInt32, {static_cast<std::int64_t>(wanted), vocab_size_}));
  histograms_.assign(wanted, {});
  return ok_status();
}

// Finds the histograms that rows already have first, so that no other row takes them.
void RowPenalties::find_histograms() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto found = rows_[i].params == nullptr
                           ? histogram_of_sequence_.end()
                           : histogram_of_sequence_.find(rows_[i].history.sequence);
    if (found == histogram_of_sequence_.end()) continue;
    histogram_of_[i] = found->second;
    histograms_[found->second].last_step = step_;
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].params == nullptr || histogram_of_[i] >= 0) continue;
    histogram_of_[i] = take_oldest();
    histograms_[histogram_of_[i]] = {.sequence = rows_[i].history.sequence, .last_step = step_};
    histogram_of_sequence_[rows_[i].history.sequence] = histogram_of_[i];
  }
}

// Takes the histogram that was used the longest ago. The step does not use it yet, since there are
// at least as many histograms as penalised rows.
int RowPenalties::take_oldest() {
  const auto oldest = std::min_element(
      histograms_.begin(), histograms_.end(),
      [](const Histogram& a, const Histogram& b) { return a.last_step < b.last_step; });
  histogram_of_sequence_.erase(oldest->sequence);
  return static_cast<int>(oldest - histograms_.begin());
}

void RowPenalties::Changes::add(std::int32_t histogram, int token_id, int num_times) {
  histograms.push_back(histogram);
  token_ids.push_back(token_id);
  times.push_back(num_times);
}

// Fills the histograms that have not counted their row's tokens. Takes back what has left the
// window of the others.
void RowPenalties::update(Exec& exec) {
  Changes changes;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::int32_t histogram = histogram_of_[i];
    if (histogram < 0) continue;
    if (histograms_[histogram].num_tokens == rows_[i].history.num_tokens) {
      take_back(rows_[i], histogram, changes);
    } else {
      fill(rows_[i], histogram, changes);
    }
  }
  if (changes.histograms.empty()) return;
  Tensor to_clear;
  CountedTokens counted;
  UploadPacket packet;
  if (!changes.cleared.empty()) packet.add(changes.cleared, to_clear);
  packet.add(changes.histograms, counted.histograms);
  packet.add(changes.token_ids, counted.token_ids);
  packet.add(changes.times, counted.times);
  packet.upload(exec);
  counts_ = count_tokens(exec, counts_, to_clear, counted);
}

void RowPenalties::fill(const Row& row, std::int32_t histogram, Changes& changes) {
  const std::span<const int> tokens = row.history.tokens;
  const int num_known = static_cast<int>(tokens.size());
  PAGODA_CHECK(num_known == row.history.num_tokens,
               "[penalties] a history is counted before its end is known");
  const PenaltyWindow window(*row.params);
  const int begin = window.begin(num_known);
  SeenTokens seen(num_known - begin);
  for (int t = begin; t < num_known; ++t)
    seen.add(tokens[t], window.is_output(t, row.history.num_prompt_tokens));
  for (const SeenToken& token : seen.entries())
    changes.add(histogram, token.token_id, token.output_count);
  changes.cleared.push_back(histogram);
  histograms_[histogram].num_tokens = num_known;
  histograms_[histogram].num_left = begin;
}

// Takes back the tokens that have left the window: one at most, since each step does so.
void RowPenalties::take_back(const Row& row, std::int32_t histogram, Changes& changes) {
  const int begin = PenaltyWindow(*row.params).begin(row.history.num_tokens);
  for (int& num_left = histograms_[histogram].num_left; num_left < begin; ++num_left)
    changes.add(histogram, row.history.tokens[num_left], -1);
}

Tensor RowPenalties::apply(Exec& exec, const Tensor& logits) const {
  if (!is_penalised()) return logits;
  static const SamplingParams off;
  std::vector<float> repetitions, frequencies, presences;
  for (const Row& row : rows_) {
    const SamplingParams& params = row.params == nullptr ? off : *row.params;
    repetitions.push_back(params.repetition_penalty);
    frequencies.push_back(params.frequency_penalty);
    presences.push_back(params.presence_penalty);
  }
  SeenTokenCounts seen{.counts = counts_, .histogram_of = {}};
  PenaltyFactors penalties;
  UploadPacket packet;
  packet.add(histogram_of_, seen.histogram_of);
  packet.add(repetitions, penalties.repetition);
  packet.add(frequencies, penalties.frequency);
  packet.add(presences, penalties.presence);
  packet.upload(exec);
  return apply_penalties(exec, logits, seen, penalties);
}

void RowPenalties::count(Exec& exec, const Tensor& drawn) {
  if (!is_penalised()) return;
  const std::vector<std::int32_t> once(rows_.size(), 1);
  CountedTokens counted{.histograms = {}, .token_ids = drawn, .times = {}};
  UploadPacket packet;
  packet.add(histogram_of_, counted.histograms);
  packet.add(once, counted.times);
  packet.upload(exec);
  counts_ = count_tokens(exec, counts_, {}, counted);
  for (const std::int32_t histogram : histogram_of_) {
    if (histogram >= 0) ++histograms_[histogram].num_tokens;
  }
}

void RowPenalties::forget() {
  counts_ = {};
  histograms_.clear();
  histogram_of_sequence_.clear();
}

void RowPenalties::call_ops(Exec& exec, const Tensor& logits, const Tensor& drawn) {
  const std::int64_t rows = logits.extent(0), vocab = logits.extent(1);
  const Tensor counts = unread_integers(exec, vocab).view({1, vocab});
  apply_penalties(exec, logits, {.counts = counts, .histogram_of = unread_integers(exec, rows)},
                  {.repetition = unread_floats(exec, rows),
                   .frequency = unread_floats(exec, rows),
                   .presence = unread_floats(exec, rows)});
  const CountedTokens counted = {.histograms = unread_integers(exec, rows),
                                 .token_ids = drawn,
                                 .times = unread_integers(exec, rows)};
  count_tokens(exec, counts, {}, counted);
  count_tokens(exec, counts, unread_integers(exec, 1), counted);
}

}  // namespace pagoda
