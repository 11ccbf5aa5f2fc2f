#include "engine/prepare_kernels.h"

#include <cstdint>
#include <vector>

#include "engine/step_sampler.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"

namespace pagoda {
namespace {

constexpr int kLongContext = 4096;  // so long that attention splits it

// The tokens of a sequence in a step, and its context.
struct Part {
  int query_len = 0;
  int context_len = 0;
};

// Makes a step of these parts, decodes first. Its keys and values are written nowhere.
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

void call_step(Exec& exec, const Decoder& decoder, KvStore& kv, const std::vector<Part>& parts) {
  const HostBatch host = make_host_batch(parts);
  const StepBatch batch = upload(exec, host);
  for (int i = 0; i < kv.num_views(); ++i) {
    if (kv.num_blocks() > 1) kv.rebind_view(i, kv_copy_blocks(exec, kv.views()[i], batch));
  }
  const HiddenState hidden = decoder.forward(exec, batch, kv);
  if (decoder.config().has_head) {
    StepSampler::call_ops(exec, decoder.logits(exec, hidden, batch.logits_rows));
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
