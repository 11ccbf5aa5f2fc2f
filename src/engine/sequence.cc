#include "engine/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"

namespace pagoda {

Sequence::Sequence(const Request& request, std::shared_ptr<const SamplingParams> params,
                   int sample_index, std::uint64_t arrival, int max_num_tokens)
    : request_id_(request.id),
      sample_index_(sample_index),
      params_(std::move(params)),
      seed_(request.seed),
      pooling_(request.generation.pooling),
      priority_(request.generation.priority),
      arrival_(arrival),
      num_prompt_tokens_(static_cast<int>(request.generation.prompt_token_ids.size())),
      max_num_tokens_(max_num_tokens) {
  PAGODA_CHECK(0 < num_prompt_tokens_ && num_prompt_tokens_ <= max_num_tokens_,
               fmt::format("[sequence] expected a prompt of 1 to {} tokens, got {}",
                           max_num_tokens_, num_prompt_tokens_));
  tokens_ = request.generation.prompt_token_ids;
  if (request.generation.mask_source) mask_source_ = request.generation.mask_source->clone();
}

int Sequence::num_readable() const {
  const int last = num_tokens() - 1;
  const PositionRange rows = rows_to_read();
  return num_read_ < rows.end ? std::min(last, std::max(num_read_, rows.begin)) : last;
}

PositionRange Sequence::rows_to_read() const {
  switch (pooling_) {
    case Pooling::kNone:
      break;
    case Pooling::kFirst:
      return {0, 1};
    case Pooling::kLast:
      return {num_prompt_tokens_ - 1, num_prompt_tokens_};
    case Pooling::kMean:
      return {0, num_prompt_tokens_};
  }
  return {0, scores_prompt() ? num_prompt_tokens_ - 1 : 0};
}

PlannedSequence Sequence::plan(int num_new_tokens) {
  PlannedSequence planned = {
      .sequence = this, .first_position = num_planned_, .num_new_tokens = num_new_tokens};
  const int end = planned.context_len();
  const int num_known = num_tokens() + num_awaited_;
  planned.samples = end == num_known && num_known < max_num_tokens_;
  if (end > num_tokens()) planned.awaited_outcome = awaited_outcome_;
  const PositionRange rows = rows_to_read();
  const int first = std::max({planned.first_position, rows.begin, num_read_});
  const int num_rows = std::max(0, std::min(end, rows.end) - first);
  if (num_rows > 0) {
    planned.first_read_row = first - planned.first_position;
    planned.num_read_rows = num_rows;
  }
  ++num_in_flight_;
  num_planned_ = end;
  if (planned.samples) ++num_awaited_;
  return planned;
}

FinishReason Sequence::append(int token_id, std::span<const int> eos_token_ids) {
  const auto contains = [token_id](std::span<const int> ids) {
    return std::find(ids.begin(), ids.end(), token_id) != ids.end();
  };
  tokens_.push_back(token_id);
  if (mask_source_) error_ = mask_source_->accept(token_id);
  if (!error_.ok()) return FinishReason::kError;
  if ((!params_->ignore_eos && contains(eos_token_ids)) || contains(params_->stop_token_ids)) {
    stop_token_id_ = token_id;
    return FinishReason::kStop;
  }
  if (mask_source_ && mask_source_->is_stopped()) return FinishReason::kStop;
  return num_tokens() == max_num_tokens_ ? FinishReason::kLength : FinishReason::kNone;
}

void Sequence::defer() {
  PAGODA_CHECK(num_forks() == 0 && num_in_flight_ == 0 && num_output_tokens() > 0,
               "[scheduler] a draw is deferred that others wait for");
  num_planned_ = --num_computed_;
  awaits_mask_ = mask_source_ != nullptr;
}

void Sequence::release_blocks(BlockTables& tables) {
  tables.release(block_table_);
  num_computed_ = num_planned_ = 0;
}

std::unique_ptr<Sequence> Sequence::split_forks(int num_kept) {
  if (num_forks() == num_kept) return nullptr;
  const auto begin = forks_.begin() + num_kept;
  std::unique_ptr<Sequence> first = std::move(*begin);
  first->forks_.assign(std::make_move_iterator(begin + 1), std::make_move_iterator(forks_.end()));
  forks_.erase(begin, forks_.end());
  return first;
}

void Sequence::go_on_from(const Sequence& first) {
  tokens_.reserve(max_num_tokens_);
  num_computed_ = num_planned_ = first.num_computed_;
  num_cached_tokens_ = first.num_cached_tokens_;
  has_fetched_ = first.has_fetched_;
}

}  // namespace pagoda
