#include "engine/model_runner.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "tensor/op_profile.h"

namespace pagoda {
namespace {

// Memory for this many tokens is paged in ahead, so that requests do not wait for it: the tokens
// that fit kMostPrefaultedBytes, within these bounds.
constexpr std::int64_t kMostPrefaultedTokens = 8192, kLeastPrefaultedTokens = 1024;
constexpr std::int64_t kMostPrefaultedBytes = 256 << 20;
// While there are prompts, only one of these parts is paged in.
constexpr std::int64_t kPartsOfPrefaulted = 8;

std::int64_t num_prefaulted_tokens(const KvLayout& layout) {
  return std::clamp(kMostPrefaultedBytes / layout.bytes_per_token(), kLeastPrefaultedTokens,
                    kMostPrefaultedTokens);
}

bool reads_hidden(const Plan& plan) {
  return std::any_of(plan.sequences.begin(), plan.sequences.end(),
                     [](const PlannedSequence& planned) { return planned.num_read_rows > 0; });
}

}  // namespace

ModelRunner::ModelRunner(Exec& exec, Decoder decoder, KvStore kv, const StepSamplerOptions& options,
                         bool host_reads_blocks)
    : exec_(exec),
      decoder_(std::move(decoder)),
      kv_(std::move(kv)),
      host_reads_blocks_(host_reads_blocks),
      num_prefaulted_tokens_(num_prefaulted_tokens(kv_.layout())),
      input_(kv_.block_size(), kv_.layout().tables),
      sampler_(exec, decoder_, options) {}

bool ModelRunner::prefault(int first_block, bool beside_prompts) {
  return kv_.prefault(
      exec_, std::int64_t{first_block} * kv_.block_size(),
      beside_prompts ? num_prefaulted_tokens_ / kPartsOfPrefaulted : num_prefaulted_tokens_);
}

RunnerStats ModelRunner::stats() const {
  const StepInputCounters& input = input_.counters();
  return {.exec = exec_.counters(),
          .num_contiguous_steps = input.num_contiguous_steps,
          .num_paged_steps = input.num_paged_steps,
          .num_step_words = input.num_words,
          .num_logits_rows = num_logits_rows_,
          .num_logits_rows_skipped = num_logits_rows_skipped_,
          .weight_bytes_per_step = decoder_.num_weight_bytes(),
          .expert_bytes_per_token = decoder_.num_expert_bytes_per_token(),
          .num_decode_expert_bytes = num_decode_expert_bytes_,
          .kv_bytes_per_token = kv_.layout().bytes_per_token(),
          .num_decode_kv_bytes = num_decode_kv_bytes_};
}

Status ModelRunner::forward(const Plan& plan) {
  if (OpProfile* profile = exec_.profile())
    profile->begin_step(plan.is_decode() ? StepPhase::kDecode : StepPhase::kPrefill);
  const HostBatch& host = input_.set(plan);
  Step& step = start_step(plan);
  StepBatch batch = input_.upload(exec_);
  if (batch.token_source.defined()) fill_token_ids(batch);
  if (!host.block_copies.empty()) copy_blocks(batch);
  StepRows& rows = step.rows;
  const std::uint64_t experts_before = exec_.counters().num_expert_bytes;
  rows.hidden = decoder_.forward(exec_, batch, kv_);
  if (batch.num_rows > 0) rows.logits = decoder_.logits(exec_, rows.hidden, batch.logits_rows);
  const std::uint64_t projected = host.logits_rows.size() + rows.scored_rows.size();
  num_logits_rows_ += projected;
  num_logits_rows_skipped_ += static_cast<std::uint64_t>(host.num_tokens()) - projected;
  if (plan.is_decode()) {
    for (const PlannedSequence& planned : plan.sequences) {
      num_decode_kv_bytes_ +=
          static_cast<std::uint64_t>(kv_.layout().bytes_read(planned.context_len()));
    }
    num_decode_expert_bytes_ += traits_of(exec_.backend()).is_native
                                    ? exec_.counters().num_expert_bytes - experts_before
                                    : plan.sequences.size() * decoder_.num_expert_bytes_per_token();
  }
  sampler_.begin(plan, rows);
  Status status = evaluate(rows);
  step.in_flight = status.ok();
  if (host_reads_blocks_ && kv_.num_views() > 0) step.written = kv_.views().back().arrays().back();
  if (!rows.reads_hidden) rows.hidden = {};
  return status;
}

// Clears and returns the next step's place. With lookahead the two places alternate, because the
// last step still has its results.
ModelRunner::Step& ModelRunner::start_step(const Plan& plan) {
  if (has_lookahead()) newest_ = 1 - newest_;
  Step& step = steps_[newest_];
  step = {};
  step.rows.reads_hidden = reads_hidden(plan);
  step.rows.scored_rows.assign(input_.scored_rows().begin(), input_.scored_rows().end());
  step.rows.scored_tokens.assign(input_.scored_tokens().begin(), input_.scored_tokens().end());
  return step;
}

// Takes awaited ids from the step before: on the device if that step is in flight, else from its
// outcomes on the host.
void ModelRunner::fill_token_ids(StepBatch& batch) {
  const Step& before = steps_[1 - newest_];
  const Tensor drawn = before.in_flight ? before.rows.drawn : sampler_.upload_tokens();
  batch.token_ids = resolve_tokens(exec_, batch.token_ids, batch.token_source, drawn);
}

void ModelRunner::copy_blocks(const StepBatch& batch) {
  for (int i = 0; i < kv_.num_views(); ++i) {
    const StepBatch copies = input_.copies_of(batch, kv_.num_parts(i));
    kv_.rebind_view(i, kv_copy_blocks(exec_, kv_.views()[i], copies));
  }
}

Status ModelRunner::draw(const Plan& plan) {
  return sampler_.draw(plan, steps_[newest_].rows);
}

// Evaluates at once the logits, the tokens drawn from them and all KV arrays, which chunks write
// even if they sample nothing. If rows are scored or pooled, it also evaluates the hidden state,
// which is then read tile by tile.
Status ModelRunner::evaluate(const StepRows& rows) {
  roots_.clear();
  if (rows.logits.defined()) roots_.push_back(rows.logits);
  sampler_.add_roots(rows, roots_);
  if (rows.reads_hidden) {
    roots_.push_back(rows.hidden.residual);
    roots_.push_back(rows.hidden.delta);
  }
  for (const KvView& view : kv_.views()) {
    for (const Tensor& array : view.arrays()) roots_.push_back(array);
  }
  Status status = exec_.evaluate(roots_);
  roots_.clear();
  return status;
}

Result<const StepOutput*> ModelRunner::sample(const Plan& plan, bool wants_logits) {
  Step& before = steps_[1 - newest_];
  Step& step = before.in_flight ? before : steps_[newest_];
  PAGODA_ASSIGN_OR_RETURN(const StepOutput* output, sampler_.sample(plan, step.rows, wants_logits));
  step.in_flight = false;
  if (step.written.defined()) {
    const Tensor written = std::exchange(step.written, {});
    PAGODA_RETURN_IF_ERROR(exec_.read(written).status());
  }
  if (OpProfile* profile = exec_.profile()) profile->end_step();
  return output;
}

void ModelRunner::abandon() {
  for (Step& step : steps_) step = {};
  input_.forget_rows();
  sampler_.forget();
  const Status end = exec_.finish();
  if (!end.ok()) log_debug("[engine] a step that was given up: {}", end.message());
}

}  // namespace pagoda
