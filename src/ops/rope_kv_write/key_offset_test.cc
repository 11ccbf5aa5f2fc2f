// Tests an offset that is subtracted from keys before they are stored: the cache holds the
// differences, and attention computes the same results.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/kv_case.h"
#include "ops/op_case.h"
#include "ops/rope/rope_cases.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr int kPromptTokens = 6, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 8;
constexpr std::int64_t kWidth = (kQueryHeads + 2 * kKvHeads) * kHeadDim;
constexpr KvFormats kFloat32 = {KvFormat::kFloat32, KvFormat::kFloat32};

// Returns a sequence's first tokens, in one block.
HostBatch prompt_batch() {
  std::vector<int> places(kPromptTokens);
  std::iota(places.begin(), places.end(), 0);
  return write_batch(places, places);
}

Tensor key_offset(Exec& exec) {
  return exec.upload<float>(random_values(2, kKvHeads * kHeadDim, 3.0f), {kKvHeads, kHeadDim});
}

RopeKvWriteResult write_keys(Exec& exec, const StepBatch& batch, const Tensor& offset) {
  const Tensor joined =
      upload_activations(exec, random_values(1, kPromptTokens * kWidth), {kPromptTokens, kWidth});
  const KvView view =
      allocate_kv_view(exec, kFloat32, {1, kPromptTokens, kKvHeads, kHeadDim}).value();
  return rope_kv_write(exec, joined, {}, {},
                       case_angles(exec, std::vector{0, 1, 2, 3, 4, 5}, 0, kHeadDim), view, batch,
                       {.num_heads = kQueryHeads, .norm = {}, .rope = {}, .key_offset = offset});
}

TEST(KeyOffset, IsTakenFromRotatedKeysAlone) {
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

// A softmax does not change if the same number is added to all of its scores.
TEST(KeyOffset, ChangesNoAttention) {
  const HostBatch host = prompt_batch();
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  const StepBatch batch = upload(*exec, host);
  const RopeKvWriteResult plain = write_keys(*exec, batch, {});
  const RopeKvWriteResult less = write_keys(*exec, batch, key_offset(*exec));
  const Tensor saw = attention(*exec, plain.q, plain.view, batch, {.scale = 0.35f});
  const Tensor sees = attention(*exec, less.q, less.view, batch, {.scale = 0.35f});
  for (std::int64_t i = 0; i < saw.num_elements(); ++i)
    EXPECT_NEAR(sees.data<float>()[i], saw.data<float>()[i], 1e-5f) << i;
}

}  // namespace
}  // namespace pagoda
