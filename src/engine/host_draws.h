// HostDraws: the rows of a step that the host draws. It draws them where ops do not do what their
// parameters ask for, or where the backend has no lookahead.
//
// A grammar's mask may take longer than a step. Without lookahead the rows of a step wait for their
// masks for 10 ms together. They wait for 100 ms where nothing else comes of the step: decodes
// alone, none with its mask. The draw of a row whose mask is not there by then is deferred, and the
// others go on. With lookahead, where the next step is launched for tokens that are not known yet,
// all rows wait.
//
// Belongs to the engine thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/host_threads.h"
#include "core/clock.h"
#include "engine/row_masks.h"
#include "engine/step_runner.h"
#include "sampling/host/sampler.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns what decides the token behind the sequence's first `context_len` ones, but for its
// logits, its mask and its state. The tokens are the sequence's own: valid until it changes.
RowSampling row_of(const Sequence& sequence, int context_len, std::span<const int> eos_token_ids);

class HostDraws {
 public:
  // Makes the host's draws. may_defer: whether a step may end without the draws whose masks are
  // late. `exec` outlives this.
  HostDraws(Exec& exec, int vocab_size, std::span<const int> eos_token_ids,
            const std::vector<std::shared_ptr<const LogitsProcessor>>& logits_processors,
            bool may_defer);

  // Starts a step, whose outcomes come into `outcomes`, which lives until draw().
  void begin_step(std::vector<SampleOutcome>& outcomes);
  // Appends an outcome, for which draw() will draw from this row, [vocab]. A sequence that has
  // ended while the step ran draws nothing: its state is what it was at its end.
  void add(Sequence& sequence, std::span<const float> logits);
  // Waits for masks and draws the rows. is_decode: the step has no prompt tokens.
  void draw(bool is_decode);

 private:
  struct HostRow {
    std::size_t outcome = 0;
    Sequence* sequence = nullptr;
    RowSampling sampling;
  };

  bool may_defer(const Sequence& sequence) const;
  static SamplerState* synced_state(Sequence& sequence);
  void take_mask(HostRow row);
  void wait_for_masks(bool is_decode);

  HostThreads threads_;
  std::vector<int> eos_token_ids_;
  bool has_processors_ = false;
  bool may_defer_ = false;
  std::vector<Sampler> samplers_;  // one a thread
  RowMasks row_masks_;
  std::vector<SampleOutcome>* outcomes_ = nullptr;
  std::vector<HostRow> rows_;
  std::vector<HostRow> rows_without_mask_;
  Clock::TimePoint mask_deadline_;
};

}  // namespace pagoda
