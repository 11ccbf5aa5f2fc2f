#include "ops/kv_copy_blocks/kv_copy_blocks.h"

#include <fmt/format.h>

#include "ops/check_kv_view.h"

namespace pagoda {

namespace {

void check_copies(const KvView& view, const StepBatch& batch) {
  const std::vector<BlockCopy>& copies = batch.host->block_copies;
  PAGODA_CHECK(batch.block_copies.shape() == Shape({static_cast<std::int64_t>(copies.size()), 3}),
               fmt::format("[kv_copy_blocks] copies: expected {}, got {}", copies.size(),
                           to_string(batch.block_copies.shape())));
  for (const BlockCopy& copy : copies) {
    PAGODA_CHECK(0 <= copy.source && copy.source < view.num_blocks() && 0 <= copy.destination &&
                     copy.destination < view.num_blocks() && copy.source != copy.destination &&
                     0 <= copy.num_tokens && copy.num_tokens <= view.block_size(),
                 fmt::format("[kv_copy_blocks] {} tokens of block {} to {}, of {} blocks of {}",
                             copy.num_tokens, copy.source, copy.destination, view.num_blocks(),
                             view.block_size()));
  }
}

double bytes_read(const KvView& view, const StepBatch& batch) {
  std::int64_t num_tokens = 0;
  for (const BlockCopy& copy : batch.host->block_copies) num_tokens += copy.num_tokens;
  return static_cast<double>(num_tokens * view.bytes_per_token());
}

}  // namespace

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  check_copies(view, batch);
  check_kv_view("kv_copy_blocks", view);
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "kv_copy_blocks", .read_bytes = bytes_read(view, batch)}; });
  static constexpr Bodies<decltype(reference::kv_copy_blocks)> kBodies{
      reference::kv_copy_blocks, cpu::kv_copy_blocks, gpu::kv_copy_blocks};
  return kBodies.of(exec)(exec, view, batch);
}

}  // namespace pagoda
