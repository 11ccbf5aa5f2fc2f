// Sequence: one sample of one request: its tokens, how many of them are in the KV cache, and in
// which blocks.
//
//   tokens    [ prompt ............ | output ... ]
//             [ computed ......... | pending ... ]
//
// A token is computed when its keys and values are in the cache. The newest sampled token is not
// computed yet. The next steps compute the pending tokens: the rest of the prompt, or the one token
// of a decode. The last pending token's logits give the next token. When a sequence is preempted,
// its prompt and its output become pending again.
//
// Tokens that steps in flight compute (two steps at most) are called planned: they are no longer
// pending and not computed yet. A token that such a step samples is pending before the host knows
// it. Only the scheduler changes a sequence. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/token_mask_source.h"
#include "engine/plan.h"
#include "engine/request.h"
#include "kv/block_tables.h"
#include "sampling/sampling_params.h"

namespace pagoda {

class SamplerState;  // sampling/host/sampler_state.h

// The positions [begin, end) of a sequence.
struct PositionRange {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
};

class Sequence {
 public:
  // Makes one sample of a request. params: the request's, shared by its samples. max_num_tokens:
  // the limit of prompt and output together, at least the prompt's length.
  Sequence(const Request& request, std::shared_ptr<const SamplingParams> params, int sample_index,
           std::uint64_t arrival, int max_num_tokens);

  RequestId request_id() const { return request_id_; }
  int sample_index() const { return sample_index_; }
  const SamplingParams& params() const { return *params_; }
  std::uint64_t seed() const { return seed_; }
  // Returns the request's priority, or the highest one if it was given its turn (see WaitingQueue).
  int priority() const { return priority_; }
  std::uint64_t arrival() const { return arrival_; }  // grows with every sequence added

  int token(int i) const { return tokens_[i]; }
  std::span<const int> tokens() const { return tokens_; }  // prompt and output
  std::span<const int> output() const { return tokens().subspan(num_prompt_tokens_); }
  int num_tokens() const { return static_cast<int>(tokens_.size()); }
  int num_prompt_tokens() const { return num_prompt_tokens_; }
  int num_output_tokens() const { return num_tokens() - num_prompt_tokens_; }
  int max_num_tokens() const { return max_num_tokens_; }  // at this length it ends with kLength
  // Returns the number of tokens that completed steps have put in the cache.
  int num_computed() const { return num_computed_; }
  // Returns the number of tokens that are computed or that a step in flight computes: the next
  // step's first position.
  int num_planned() const { return num_planned_; }
  // Returns the number of tokens that no step computes yet. It counts a token that a step in flight
  // samples, except the last one that the sequence may have. No token follows that one, so it is
  // never computed.
  int num_pending() const {
    const int num_known = num_tokens() + num_awaited_;
    return num_known - num_planned_ - (num_awaited_ > 0 && num_known >= max_num_tokens_ ? 1 : 0);
  }

  // Returns whether exactly one token is pending: its row gives the next token.
  bool is_decoding() const { return num_pending() == 1; }
  // Returns the number of pending tokens that a step may take now. It is 0 for a sequence that has
  // ended, was cancelled or awaits a mask. It is also 0 while forks wait for the token of a step in
  // flight.
  int num_plannable() const {
    const bool forks_wait = num_awaited_ > 0 && num_forks() > 0;
    return finished() || cancelled_ || forks_wait || awaits_mask_ ? 0 : num_pending();
  }
  // Returns the number of tokens that may be read from the prefix cache. The last known token is
  // always computed, because its logits give the next one. So are prompt rows that are still to be
  // scored or pooled.
  int num_readable() const;
  // Returns its length and the most tokens that it may store. The last token that it may have is
  // sampled, but never stored.
  SequenceLength length() const {
    return {.num_tokens = num_tokens(),
            .max_stored = std::max(num_prompt_tokens_, max_num_tokens_ - 1)};
  }

  // Returns its blocks, which only the scheduler changes.
  const BlockTable& blocks() const { return block_table_; }
  // Returns the blocks that hold positions 0, block_size, 2 * block_size, ... in a cache group;
  // kNoBlock for those that have been given back.
  std::span<const int> block_table(int group = 0) const { return block_table_.ids(group); }

  // Returns the number of prompt tokens, in whole blocks, that the prefix cache had when the
  // sequence was first admitted.
  int num_cached_tokens() const { return num_cached_tokens_.value_or(0); }

  // Returns the other samples of the request, which wait until this one has computed the prompt.
  // Their first tokens are drawn from its last row, and they go on in its blocks.
  std::span<const std::unique_ptr<Sequence>> forks() const { return forks_; }
  int num_forks() const { return static_cast<int>(forks_.size()); }
  // Removes the forks past the first `num_kept`. Returns the first of them, with the others as its
  // forks; null if there are none.
  std::unique_ptr<Sequence> split_forks(int num_kept);

  // Returns whether it scores the prompt. Only sample 0 does, because the others' scores would be
  // the same.
  bool scores_prompt() const { return params_->prompt_logprobs.has_value() && sample_index_ == 0; }
  Pooling pooling() const { return pooling_; }
  // Returns the prompt positions whose rows are read, each once: to score the token that follows,
  // or to be pooled.
  PositionRange rows_to_read() const;
  // Returns whether it has fewer than min_tokens: end-of-sequence and stop ids must not be sampled.
  bool bans_stop_tokens() const { return num_output_tokens() < params_->min_tokens; }

  // Returns whether a step that is not committed computes it.
  bool is_in_flight() const { return num_in_flight_ > 0; }
  bool finished() const { return finish_reason_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return finish_reason_; }
  std::optional<int> stop_token_id() const { return stop_token_id_; }  // for kStop: the last token
  const Status& error() const { return error_; }                       // for kError

  // Returns the sampler's state of this sequence; null if no parameter depends on past tokens. The
  // model runner makes it at the first draw. It lives as long as the sequence, and the scheduler
  // never reads it.
  const std::shared_ptr<SamplerState>& sampler_state() const { return sampler_state_; }
  void set_sampler_state(std::shared_ptr<SamplerState> state) { sampler_state_ = std::move(state); }

  // Returns the grammar's state after the output so far, which gives the mask of the next token;
  // null if there is no grammar.
  TokenMaskSource* mask_source() const { return mask_source_.get(); }

 private:
  friend class Scheduler;

  // Plans the next step to take num_new_tokens pending tokens.
  PlannedSequence plan(int num_new_tokens);
  // Appends a token. Returns how the sequence ends with it, or kNone if it goes on. kError: the
  // grammar has refused the token; error() says why.
  FinishReason append(int token_id, std::span<const int> eos_token_ids);
  // Records that a step's draw was deferred. The last computed token becomes pending again, because
  // its row is computed again.
  void defer();
  // Gives the blocks back. All tokens are pending then.
  void release_blocks(BlockTables& tables);
  // Continues where `first` is: another sample of the request, which has computed the prompt or a
  // part of it.
  void go_on_from(const Sequence& first);

  RequestId request_id_ = 0;
  int sample_index_ = 0;
  std::shared_ptr<const SamplingParams> params_;
  std::uint64_t seed_ = 0;
  Pooling pooling_ = Pooling::kNone;
  int priority_ = 0;
  std::uint64_t arrival_ = 0;

  std::vector<int> tokens_;
  int num_prompt_tokens_ = 0;
  int max_num_tokens_ = 0;
  int num_computed_ = 0;
  int num_planned_ = 0;
  // The end of the prompt's rows that have been read. Preemption does not reset it.
  int num_read_ = 0;
  BlockTable block_table_;
  std::optional<int> num_cached_tokens_;
  std::vector<std::unique_ptr<Sequence>> forks_;

  int num_in_flight_ = 0;     // plans that are not committed
  int num_awaited_ = 0;       // tokens that these plans sample
  int awaited_outcome_ = -1;  // index of the next token among the newest plan's outcomes
  bool cancelled_ = false;    // it ends as soon as it is not in flight
  bool has_fetched_ = false;  // a fetch has begun since it was last admitted
  bool awaits_mask_ = false;  // its draw was deferred; it is not planned until the mask is ready
  FinishReason finish_reason_ = FinishReason::kNone;
  std::optional<int> stop_token_id_;
  Status error_;
  std::shared_ptr<SamplerState> sampler_state_;
  std::unique_ptr<TokenMaskSource> mask_source_;
};

}  // namespace pagoda
