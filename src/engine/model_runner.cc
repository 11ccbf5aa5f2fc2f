#include "engine/model_runner.h"

#include <algorithm>

#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "tensor/op_profile.h"

namespace pagoda {

ModelRunner::ModelRunner(Exec& exec, Decoder decoder, KvStore kv,
                         std::vector<std::shared_ptr<const LogitsProcessor>> processors)
    : exec_(exec),
      decoder_(std::move(decoder)),
      kv_(std::move(kv)),
      sampler_(decoder_.config().vocab_size, std::move(processors)),
      row_mask_(decoder_.config().vocab_size, decoder_.config().eos_token_ids),
      input_(kv_.block_size()) {}

Status ModelRunner::forward(const Plan& plan) {
  if (OpProfile* profile = exec_.profile())
    profile->begin_step(plan.is_decode() ? StepPhase::kDecode : StepPhase::kPrefill);
  const HostBatch& host = input_.set(plan);
  logits_ = {};
  batch_ = input_.upload(exec_);
  if (!host.block_copies.empty()) copy_blocks();
  hidden_ = decoder_.forward(exec_, batch_, kv_);
  if (batch_.num_rows > 0) logits_ = decoder_.logits(exec_, hidden_, batch_.logits_rows);
  const std::uint64_t projected = host.logits_rows.size() + input_.scored_rows().size();
  counters_.num_logits_rows += projected;
  counters_.num_logits_rows_skipped += static_cast<std::uint64_t>(host.num_tokens()) - projected;
  return evaluate();
}

void ModelRunner::copy_blocks() {
  for (int layer = 0; layer < kv_.num_layers(); ++layer)
    kv_.rebind(layer, kv_copy_blocks(exec_, kv_.view(layer), batch_));
}

// One evaluation: the logits and every KV array written, by chunks that sample nothing too; where
// rows are scored the hidden state as well, from which the tiles are projected one by one.
Status ModelRunner::evaluate() {
  roots_.clear();
  if (logits_.defined()) roots_.push_back(logits_);
  if (!input_.scored_rows().empty()) {
    roots_.push_back(hidden_.residual);
    roots_.push_back(hidden_.delta);
  }
  for (const KvView& view : kv_.views()) {
    roots_.push_back(view.keys);
    roots_.push_back(view.values);
  }
  Status status = exec_.evaluate(roots_);
  roots_.clear();
  return status;
}

Result<const StepOutput*> ModelRunner::sample(const Plan& plan) {
  output_.outcomes.clear();
  output_.samples.clear();
  output_.of_sequence.resize(plan.sequences.size());
  for (SequenceOutput& output : output_.of_sequence) {
    output.scored.clear();
    output.score_error = ok_status();
  }
  PAGODA_RETURN_IF_ERROR(score_rows(plan));
  hidden_ = {};
  PAGODA_RETURN_IF_ERROR(sample_rows(plan));
  if (OpProfile* profile = exec_.profile()) profile->end_step();
  return &output_;
}

Status ModelRunner::score_rows(const Plan& plan) {
  const std::size_t num_rows = input_.scored_rows().size();
  for (std::size_t first = 0; first < num_rows; first += kScoreTileRows) {
    const std::size_t count = std::min<std::size_t>(kScoreTileRows, num_rows - first);
    PAGODA_RETURN_IF_ERROR(score_tile(plan, first, count));
  }
  return ok_status();
}

Status ModelRunner::score_tile(const Plan& plan, std::size_t first, std::size_t count) {
  const std::span<const std::int32_t> rows = input_.scored_rows().subspan(first, count);
  const std::span<const ScoredToken> tokens = input_.scored_tokens().subspan(first, count);
  const Tensor logits = decoder_.logits(
      exec_, hidden_, exec_.upload<std::int32_t>(rows, {static_cast<std::int64_t>(count)}));
  PAGODA_RETURN_IF_ERROR(exec_.evaluate({&logits, 1}));
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec_.read(logits));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  const auto vocab = static_cast<std::size_t>(sampler_.vocab_size());
  for (std::size_t i = 0; i < count; ++i) {
    SequenceOutput& output = output_.of_sequence[tokens[i].sequence];
    const SamplingParams& params = plan.sequences[tokens[i].sequence].sequence->params();
    Result<TokenLogprobs> score = sampler_.score({values + i * vocab, vocab}, tokens[i].token_id,
                                                 params.prompt_logprobs.value_or(0));
    if (score.ok()) {
      output.scored.push_back(*std::move(score));
    } else {
      output.score_error = score.status();
    }
  }
  return ok_status();
}

Status ModelRunner::sample_rows(const Plan& plan) {
  if (!logits_.defined()) return ok_status();
  const OpTimer timer(exec_,
                      [&] { return OpCall{.op = "sample", .read_bytes = bytes_of(logits_)}; });
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec_.read(logits_));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  const auto vocab = static_cast<std::size_t>(sampler_.vocab_size());
  std::size_t row = 0;
  for (const PlannedSequence& planned : plan.sequences) {
    if (!planned.samples) continue;
    const std::span<const float> logits = {values + row++ * vocab, vocab};
    sample_row(*planned.sequence, logits);
    for (const std::unique_ptr<Sequence>& fork : planned.sequence->forks())
      sample_row(*fork, logits);
  }
  return ok_status();
}

void ModelRunner::sample_row(Sequence& sequence, std::span<const float> logits) {
  if (SamplerState::is_needed(sequence.params()) && !sequence.sampler_state())
    sequence.set_sampler_state(
        std::make_shared<SamplerState>(sequence.params(), sequence.max_num_tokens()));
  SamplerState* state = sequence.sampler_state().get();
  if (state != nullptr) state->sync(sequence.tokens(), sequence.num_prompt_tokens());
  const Result<std::span<const std::uint32_t>> mask = row_mask_.of(sequence);
  if (!mask.ok()) {
    output_.outcomes.push_back({.status = mask.status()});
    output_.samples.push_back({.sequence = &sequence, .logits = logits});
    return;
  }
  Result<SampledToken> token = sampler_.sample({.logits = logits,
                                                .params = &sequence.params(),
                                                .bans_stop_tokens = sequence.bans_stop_tokens(),
                                                .eos_token_ids = decoder_.config().eos_token_ids,
                                                .mask = *mask,
                                                .state = state,
                                                .tokens = sequence.tokens(),
                                                .num_prompt_tokens = sequence.num_prompt_tokens(),
                                                .seed = sequence.seed(),
                                                .sample_index = sequence.sample_index(),
                                                .position = sequence.num_tokens()});
  output_.outcomes.push_back(
      {.token_id = token.ok() ? token->token_id : 0, .status = token.status()});
  SampleOutput& output =
      output_.samples.emplace_back(SampleOutput{.sequence = &sequence, .logits = logits});
  if (token.ok()) output.logprobs = std::move(token->logprobs);
}

}  // namespace pagoda
