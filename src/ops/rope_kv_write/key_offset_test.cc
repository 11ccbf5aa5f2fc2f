// An offset that keys are stored without: what the cache then holds, and that attention, which is
// told of it, sees what it saw.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/kv_case.h"
#include "ops/op_case.h"
#include "ops/rope/rope_cases.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr int kTokens = 6, kHeads = 4, kKvHeads = 2, kHeadDim = 8;
constexpr std::int64_t kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr KvFormats kFloat32 = {KvFormat::kFloat32, KvFormat::kFloat32};

// A sequence's first tokens, in one block.
HostBatch prompt_batch() {
  HostBatch host;
  for (int t = 0; t < kTokens; ++t) {
    host.token_ids.push_back(0);
    host.positions.push_back(t);
    host.slot_mapping.push_back(t);
  }
  host.query_start = {0, kTokens};
  host.context_lens = {kTokens};
  host.max_blocks = 1;
  host.block_tables = {0};
  return host;
}

Tensor key_offset(Exec& exec) {
  return exec.upload<float>(random_values(2, kKvHeads * kHeadDim, 3.0f), {kKvHeads, kHeadDim});
}

RopeKvWriteResult write_keys(Exec& exec, const StepBatch& batch, const Tensor& offset) {
  const Tensor joined =
      upload_activations(exec, random_values(1, kTokens * kWidth), {kTokens, kWidth});
  const KvView view = allocate_kv_view(exec, kFloat32, {1, kTokens, kKvHeads, kHeadDim}).value();
  return rope_kv_write(exec, joined, {}, {},
                       case_angles(exec, std::vector{0, 1, 2, 3, 4, 5}, 0, kHeadDim), view, batch,
                       {.num_heads = kHeads, .norm = {}, .rope = {}, .key_offset = offset});
}

TEST(KeyOffset, IsTakenFromTurnedKeysAlone) {
  const HostBatch host = prompt_batch();
  const std::vector<float> offset = random_values(2, kKvHeads * kHeadDim, 3.0f);
  for (const auto& exec : every_exec()) {
    const StepBatch batch = upload(*exec, host);
    const RopeKvWriteResult plain = write_keys(*exec, batch, {});
    const RopeKvWriteResult less = write_keys(*exec, batch, key_offset(*exec));
    const auto values = [&](const Tensor& tensor) { return compute_values<float>(*exec, tensor); };
    std::vector<float> expected = values(plain.view.keys.elements);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= offset[i % offset.size()];
    EXPECT_EQ(values(less.view.keys.elements), expected) << backend_name(exec->backend());
    EXPECT_EQ(values(less.view.values.elements), values(plain.view.values.elements));
    EXPECT_EQ(values(less.q), values(plain.q));
  }
}

TEST(KeyOffset, AttentionThatIsToldOfItSeesWhatItSaw) {
  const HostBatch host = prompt_batch();
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  const StepBatch batch = upload(*exec, host);
  const Tensor offset = key_offset(*exec);
  const auto largest_difference = [](const Tensor& a, const Tensor& b) {
    float largest = 0;
    for (std::int64_t i = 0; i < a.num_elements(); ++i)
      largest = std::max(largest, std::abs(a.data<float>()[i] - b.data<float>()[i]));
    return largest;
  };
  const Tensor sinks = exec->upload<float>(random_values(3, kHeads), {kHeads});
  const RopeKvWriteResult plain = write_keys(*exec, batch, {});
  const RopeKvWriteResult less = write_keys(*exec, batch, offset);
  for (const float soft_cap : {0.0f, 2.0f}) {
    for (const bool has_sinks : {false, true}) {
      AttentionArgs args = {.scale = 0.35f, .soft_cap = soft_cap};
      if (has_sinks) args.sinks = sinks;
      const Tensor saw = attention(*exec, plain.q, plain.view, batch, args);
      const float untold =
          largest_difference(attention(*exec, less.q, less.view, batch, args), saw);
      args.key_offset = offset;
      EXPECT_LT(largest_difference(attention(*exec, less.q, less.view, batch, args), saw), 1e-5f);
      // A constant changes nothing of a softmax alone.
      const bool needs_offset = soft_cap > 0 || has_sinks;
      EXPECT_EQ(untold > 1e-2f, needs_offset) << untold;
    }
  }
}

}  // namespace
}  // namespace pagoda
