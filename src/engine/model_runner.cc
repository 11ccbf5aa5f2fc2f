#include "engine/model_runner.h"

#include <algorithm>

#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "tensor/op_profile.h"

namespace pagoda {

ModelRunner::ModelRunner(Exec& exec, Decoder decoder, KvStore kv)
    : exec_(exec),
      decoder_(std::move(decoder)),
      kv_(std::move(kv)),
      sampler_(decoder_.config().vocab_size) {}

void ModelRunner::fill_host_batch(const Plan& plan) {
  host_.clear();
  score_rows_.clear();
  score_of_.clear();
  for (const PlannedCopy& copy : plan.block_copies)
    host_.block_copies.push_back({copy.source, copy.destination, copy.num_tokens});
  host_.num_decodes = plan.num_decodes;
  host_.query_start.push_back(0);
  for (const PlannedSequence& planned : plan.sequences) {
    host_.max_blocks =
        std::max(host_.max_blocks, static_cast<int>(planned.sequence->block_table().size()));
  }
  for (int index = 0; index < static_cast<int>(plan.sequences.size()); ++index) {
    const PlannedSequence& planned = plan.sequences[index];
    const Sequence& sequence = *planned.sequence;
    const std::span<const int> blocks = sequence.block_table();
    const int first_token = host_.num_tokens();
    for (int position = planned.first_position; position < planned.context_len(); ++position) {
      host_.token_ids.push_back(sequence.token(position));
      host_.positions.push_back(position);
      host_.slot_mapping.push_back(blocks[position / kv_.block_size()] * kv_.block_size() +
                                   position % kv_.block_size());
    }
    for (int i = 0; i < planned.num_scored_rows; ++i) {
      const int row = planned.first_scored_row + i;
      score_rows_.push_back(first_token + row);
      score_of_.emplace_back(index, sequence.token(planned.first_position + row + 1));
    }
    if (planned.samples) host_.logits_rows.push_back(host_.num_tokens() - 1);
    host_.query_start.push_back(host_.num_tokens());
    host_.context_lens.push_back(planned.context_len());
    host_.block_tables.insert(host_.block_tables.end(), blocks.begin(), blocks.end());
    host_.block_tables.resize(host_.block_tables.size() + host_.max_blocks - blocks.size(), 0);
  }
}

Status ModelRunner::forward(const Plan& plan) {
  if (OpProfile* profile = exec_.profile())
    profile->begin_step(plan.is_decode() ? StepPhase::kDecode : StepPhase::kPrefill);
  fill_host_batch(plan);
  logits_ = {};
  batch_ = upload(exec_, host_);
  if (!host_.block_copies.empty()) copy_blocks();
  hidden_ = decoder_.forward(exec_, batch_, kv_);
  if (batch_.num_rows > 0) logits_ = decoder_.logits(exec_, hidden_, batch_.logits_rows);
  const std::uint64_t projected = host_.logits_rows.size() + score_rows_.size();
  counters_.num_logits_rows += projected;
  counters_.num_logits_rows_skipped += static_cast<std::uint64_t>(host_.num_tokens()) - projected;
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
  if (!score_rows_.empty()) {
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
  const std::span<const std::int32_t> rows = score_rows_;
  for (std::size_t begin = 0; begin < rows.size(); begin += kScoreTileRows) {
    const std::size_t count = std::min<std::size_t>(kScoreTileRows, rows.size() - begin);
    PAGODA_RETURN_IF_ERROR(score_tile(plan, rows.subspan(begin, count)));
  }
  return ok_status();
}

Status ModelRunner::score_tile(const Plan& plan, std::span<const std::int32_t> rows) {
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const Tensor logits =
      decoder_.logits(exec_, hidden_, exec_.upload<std::int32_t>(rows, {num_rows}));
  PAGODA_RETURN_IF_ERROR(exec_.evaluate({&logits, 1}));
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec_.read(logits));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  const auto vocab = static_cast<std::size_t>(sampler_.vocab_size());
  const std::size_t first = static_cast<std::size_t>(rows.data() - score_rows_.data());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [index, target] = score_of_[first + i];
    SequenceOutput& output = output_.of_sequence[index];
    const int num_top = plan.sequences[index].sequence->params().prompt_logprobs.value_or(0);
    Result<TokenLogprobs> score = sampler_.score({values + i * vocab, vocab}, target, num_top);
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
  Result<SampledToken> token = sampler_.sample({.logits = logits,
                                                .params = &sequence.params(),
                                                .bans_stop_tokens = sequence.bans_stop_tokens(),
                                                .eos_token_ids = decoder_.config().eos_token_ids,
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
