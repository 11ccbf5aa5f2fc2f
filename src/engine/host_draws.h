// HostDraws: draws a step's tokens on the host: for rows whose parameters the ops do not support,
// and for all rows of a backend without lookahead.
//
// A grammar's mask may take longer to compute than a step. Without lookahead all rows of a step
// together wait 10 ms for their masks. They wait 100 ms if the step would otherwise give no token:
// it has only decodes, and none of them has its mask. The draw of a row whose mask is not ready by
// then is deferred, and the other rows are drawn. With lookahead all rows wait, because the next
// step is already launched for their tokens.
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

// Returns the inputs of the draw at position context_len, except its logits, mask and state. Its
// tokens refer to the sequence: they are valid until the sequence changes.
RowSampling row_of(const Sequence& sequence, int context_len, std::span<const int> eos_token_ids);

class HostDraws {
 public:
  // Makes a sampler for each thread. may_defer: whether a step may end without the draws whose
  // masks are late. `exec` outlives this.
  HostDraws(Exec& exec, int vocab_size, std::span<const int> eos_token_ids,
            const std::vector<std::shared_ptr<const LogitsProcessor>>& logits_processors,
            bool may_defer);

  // Starts a step. Its outcomes are appended to `outcomes`, which has to live until draw().
  void begin_step(std::vector<SampleOutcome>& outcomes);
  // Appends an outcome, which draw() draws from this row, [vocab]. Nothing is drawn for a sequence
  // that has ended while the step ran: its state stays as it was at its end.
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
  std::vector<Sampler> samplers_;  // one per thread
  RowMasks row_masks_;
  std::vector<SampleOutcome>* outcomes_ = nullptr;
  std::vector<HostRow> rows_;
  std::vector<HostRow> rows_without_mask_;
  Clock::TimePoint mask_deadline_;
};

}  // namespace pagoda
