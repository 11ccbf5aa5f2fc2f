#include "engine/prepare_kernels.h"

#include <cstdint>
#include <vector>

#include "ops/apply_logit_bias/apply_logit_bias.h"
#include "ops/apply_penalties/apply_penalties.h"
#include "ops/apply_token_mask/apply_token_mask.h"
#include "ops/argmax/argmax.h"
#include "ops/count_tokens/count_tokens.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/log_probs/log_probs.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "ops/sample/sample.h"

namespace pagoda {
namespace {

constexpr int kLongContext = 4096;  // that attention shares out

// The tokens of a sequence in a step, and its context.
struct Part {
  int query_len = 0;
  int context_len = 0;
};

// A step of these parts, decodes first, whose tokens are written nowhere.
HostBatch make_host_batch(const std::vector<Part>& parts) {
  HostBatch host;
  host.max_blocks = 1;
  host.query_start.push_back(0);
  for (const auto& [query_len, context_len] : parts) {
    for (int i = 0; i < query_len; ++i) {
      host.token_ids.push_back(0);
      host.positions.push_back(context_len - query_len + i);
      host.slot_mapping.push_back(-1);
    }
    host.query_start.push_back(host.num_tokens());
    host.context_lens.push_back(context_len);
    host.first_slots.push_back(-1);
    host.block_tables.push_back(0);
    host.logits_rows.push_back(host.num_tokens() - 1);
    if (query_len == 1) ++host.num_decodes;
  }
  host.block_copies.push_back({.source = 0, .destination = 1, .num_tokens = 0});
  return host;
}

Tensor integers(Exec& exec, std::int64_t count) {
  return exec.upload<std::int32_t>(std::vector<std::int32_t>(count), {count});
}

Tensor ones(Exec& exec, std::int64_t count) {
  return exec.upload<float>(std::vector<float>(count, 1.0f), {count});
}

// Calls what may be done to rows of logits, and draws from them.
void call_sampling_ops(Exec& exec, const Tensor& logits) {
  const std::int64_t rows = logits.extent(0), vocab = logits.extent(1);
  const Tensor ids = argmax(exec, logits);
  const std::int64_t words = (vocab + 31) / 32;
  apply_token_mask(
      exec, logits,
      {.words = integers(exec, words).view({1, words}), .mask_of = integers(exec, rows)});
  apply_logit_bias(exec, logits, {.rows = integers(exec, 1), .token_ids = integers(exec, 1)},
                   ones(exec, 1));
  const Tensor counts = integers(exec, vocab).view({1, vocab});
  apply_penalties(exec, logits, {.counts = counts, .histogram_of = integers(exec, rows)},
                  {.repetition = ones(exec, rows),
                   .frequency = ones(exec, rows),
                   .presence = ones(exec, rows)});
  const CountedTokens counted = {
      .histograms = integers(exec, rows), .token_ids = ids, .times = integers(exec, rows)};
  count_tokens(exec, counts, {}, counted);
  count_tokens(exec, counts, integers(exec, 1), counted);
  const RowFilters filters = {
      .top_k = integers(exec, rows), .top_p = ones(exec, rows), .min_p_margin = ones(exec, rows)};
  SampleArgs draw = {.inverse_temperature = ones(exec, rows),
                     .uniforms = integers(exec, 2 * rows).view({rows, 2})};
  sample(exec, logits, draw);
  draw.filters = &filters;
  sample(exec, logits, draw);
  const Tensor all = integers(exec, rows);
  for (const int num_top : {0, 1}) {
    log_probs(exec, logits, ids, {.num_top = num_top});
    log_probs(exec, logits, ids, {.rows = &all, .num_top = num_top});
  }
  resolve_tokens(exec, ids, integers(exec, rows), ids);
}

void call_step(Exec& exec, const Decoder& decoder, KvStore& kv, const std::vector<Part>& parts) {
  const HostBatch host = make_host_batch(parts);
  const StepBatch batch = upload(exec, host);
  for (int i = 0; i < kv.num_views(); ++i) {
    if (kv.num_blocks() > 1) kv.rebind_view(i, kv_copy_blocks(exec, kv.views()[i], batch));
  }
  const HiddenState hidden = decoder.forward(exec, batch, kv);
  if (decoder.config().has_head) {
    call_sampling_ops(exec, decoder.logits(exec, hidden, batch.logits_rows));
  } else {
    decoder.last_hidden(exec, hidden, batch.logits_rows);
  }
}

}  // namespace

Status prepare_kernels(Exec& exec, const Decoder& decoder, KvStore& kv,
                       const std::function<void(double)>& progress) {
  const std::vector<KvView> views(kv.views().begin(), kv.views().end());
  const auto call_ops = [&] {
    call_step(exec, decoder, kv, {{1, 1}});
    call_step(exec, decoder, kv, {{1, 1}, {1, kLongContext}});
    call_step(exec, decoder, kv, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {64, 64}});
  };
  const Status status = exec.prepare_kernels(call_ops, progress);
  for (int i = 0; i < kv.num_views(); ++i) kv.rebind_view(i, views[i]);
  if (progress) progress(1.0);
  return status;
}

}  // namespace pagoda
