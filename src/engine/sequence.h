// Sequence: one sample of one request: its tokens, how many of them stand in the KV cache, and in
// which blocks.
//
//   tokens    [ prompt ............ | output ... ]
//             [ computed ......... | pending ... ]
//
// Every token but the last sampled one is computed: its keys and values are in the cache. `pending`
// is what the next steps compute: the prompt's rest, or the one token that a decode brings. The
// last pending token's logits give the next token. A sequence that is preempted has nothing
// computed any more: prompt and output are pending.
//
// Steps in flight, two at most, stand between: what they compute is planned, and a token that they
// sample is pending before the host knows it. Only the scheduler changes a sequence.
// Thread-compatible.
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
  // Makes one sample of a request. params: the request's, which its samples share. max_num_tokens:
  // of prompt and output together, at least the prompt's.
  Sequence(const Request& request, std::shared_ptr<const SamplingParams> params, int sample_index,
           std::uint64_t arrival, int max_num_tokens);

  RequestId request_id() const { return request_id_; }
  int sample_index() const { return sample_index_; }
  const SamplingParams& params() const { return *params_; }
  std::uint64_t seed() const { return seed_; }
  // Returns the request's priority, or the best there is: see Scheduler.
  int priority() const { return priority_; }
  std::uint64_t arrival() const { return arrival_; }  // grows with every sequence added

  int token(int i) const { return tokens_[i]; }
  std::span<const int> tokens() const { return tokens_; }  // prompt and output
  std::span<const int> output() const { return tokens().subspan(num_prompt_tokens_); }
  int num_tokens() const { return static_cast<int>(tokens_.size()); }
  int num_prompt_tokens() const { return num_prompt_tokens_; }
  int num_output_tokens() const { return num_tokens() - num_prompt_tokens_; }
  int max_num_tokens() const { return max_num_tokens_; }  // ends with kLength when it has as many
  // Returns the tokens that completed steps have put in the cache.
  int num_computed() const { return num_computed_; }
  // Returns the number of those and the ones that steps in flight put there; the next step's first
  // position.
  int num_planned() const { return num_planned_; }
  // Returns the number of tokens that no step computes yet. A token that a step in flight samples
  // counts, unless it is the last one that the sequence may have: no token follows that one, so it
  // is not computed.
  int num_pending() const {
    const int num_known = num_tokens() + num_awaited_;
    return num_known - num_planned_ - (num_awaited_ > 0 && num_known >= max_num_tokens_ ? 1 : 0);
  }

  // Returns whether all tokens but one are computed or planned: the row of that one gives the next.
  bool is_decoding() const { return num_pending() == 1; }
  // Returns the number of pending tokens that a step may take now. A sequence that has ended while
  // a step in flight computes it has none. Nor has one whose forks wait for the token of that step,
  // or one that awaits a mask.
  int num_plannable() const {
    const bool forks_wait = num_awaited_ > 0 && num_forks() > 0;
    return finished() || cancelled_ || forks_wait || awaits_mask_ ? 0 : num_pending();
  }
  // Returns the tokens that may be read from the prefix cache. The last known token is computed
  // whatever the cache has: its logits give the next one. So are the rows of a prompt that are
  // still to be read.
  int num_readable() const;
  // Returns how long it is and may become. The last token that it may have is sampled, but never
  // computed.
  SequenceLength length() const {
    return {.num_tokens = num_tokens(),
            .max_stored = std::max(num_prompt_tokens_, max_num_tokens_ - 1)};
  }

  // Returns its blocks, which the scheduler alone changes.
  const BlockTable& blocks() const { return block_table_; }
  // Returns the blocks that hold positions 0, block_size, 2 * block_size, ... in a cache group;
  // kNoBlock where they have been given back.
  std::span<const int> block_table(int group = 0) const { return block_table_.ids(group); }

  // Returns the number of prompt tokens that stood in the prefix cache when it was first admitted,
  // in whole blocks.
  int num_cached_tokens() const { return num_cached_tokens_.value_or(0); }

  // Returns the other samples of the request, which wait for this one to compute the prompt: they
  // take their first tokens from its last row, and go on from its blocks.
  std::span<const std::unique_ptr<Sequence>> forks() const { return forks_; }
  int num_forks() const { return static_cast<int>(forks_.size()); }
  // Takes the forks past the first `num_kept`, as forks of the first of them; null: there are none.
  std::unique_ptr<Sequence> split_forks(int num_kept);

  // Returns whether it scores the prompt: sample 0 alone scores the prompt; the others' scores
  // would be the same.
  bool scores_prompt() const { return params_->prompt_logprobs.has_value() && sample_index_ == 0; }
  Pooling pooling() const { return pooling_; }
  // Returns the positions of the prompt whose rows are read, each once: to score the tokens behind
  // them, or to be pooled.
  PositionRange rows_to_read() const;
  // Returns whether it has fewer than min_tokens: end-of-sequence and stop ids must not be sampled.
  bool bans_stop_tokens() const { return num_output_tokens() < params_->min_tokens; }

  bool is_in_flight() const { return num_in_flight_ > 0; }  // a step that is not over computes it
  bool finished() const { return finish_reason_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return finish_reason_; }
  std::optional<int> stop_token_id() const { return stop_token_id_; }  // of kStop: the last token
  const Status& error() const { return error_; }                       // of kError

  // Returns the sampler's memory of this sequence; null where neither a penalty nor mirostat is
  // asked for. The model runner makes it at the first draw, and it lives as long as the sequence;
  // the scheduler never looks inside.
  const std::shared_ptr<SamplerState>& sampler_state() const { return sampler_state_; }
  void set_sampler_state(std::shared_ptr<SamplerState> state) { sampler_state_ = std::move(state); }

  // Returns the source of the tokens that the sample's grammar allows next, which has taken the
  // output so far; null where there is no grammar.
  TokenMaskSource* mask_source() const { return mask_source_.get(); }

 private:
  friend class Scheduler;

  // Plans that the next step takes so many pending tokens.
  PlannedSequence plan(int num_new_tokens);
  // Takes a token behind the others; returns how the sequence ends with it, kNone where it goes on.
  // kError: the grammar has refused it; error() says why.
  FinishReason append(int token_id, std::span<const int> eos_token_ids);
  // Records that a step's draw was deferred. The last token of those that are computed counts as
  // pending: it is computed again for its row.
  void defer();
  // Gives the blocks back: nothing is computed any more.
  void release_blocks(BlockTables& tables);
  // Goes on where `first` is, another sample of the request, which has computed the prompt or a
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
  // The end of the prompt's rows that have been read, whatever was preempted since.
  int num_read_ = 0;
  BlockTable block_table_;
  std::optional<int> num_cached_tokens_;
  std::vector<std::unique_ptr<Sequence>> forks_;

  int num_in_flight_ = 0;     // plans that are not committed
  int num_awaited_ = 0;       // tokens that those sample
  int awaited_outcome_ = -1;  // of the newest one's outcomes, the next token
  bool cancelled_ = false;    // while in flight
  bool has_fetched_ = false;  // from the cache's tier, and has not been admitted since
  bool awaits_mask_ = false;  // its draw was deferred, and it is not planned
  FinishReason finish_reason_ = FinishReason::kNone;
  std::optional<int> stop_token_id_;
  Status error_;
  std::shared_ptr<SamplerState> sampler_state_;
  std::unique_ptr<TokenMaskSource> mask_source_;
};

}  // namespace pagoda
