// On the native backends a step in steady state allocates nothing: the ops are run over and over
// while the heap is watched.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/attention/attention.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/glu/glu.h"
#include "ops/kv_case.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/op_case.h"
#include "ops/rope/rope.h"
#include "ops/select_rows/select_rows.h"
#include "tests/support/count_news.h"

namespace pagoda {
namespace {

// A layer of a model with 4 heads of 16 on 2 kv heads, and what its step needs.
class Layer {
 public:
  Layer(Exec& exec, HostBatch& host, const KvFormats& formats) : exec_(exec), host_(host) {
    const auto weight = [&](std::uint32_t seed, int rows, int cols) {
      const HostTensor parts[] = {random_matrix(seed, WeightFormat::kQ4_1, rows, cols)};
      return prepare_weight(exec, parts).value();
    };
    embedding_ = weight(1, 100, kHidden);
    qkv_ = weight(2, 2 * kHidden, kHidden);
    gate_up_ = weight(3, 2 * kInner, kHidden);
    down_ = weight(4, kHidden, kInner);
    norm_ = exec.upload<float>(random_values(5, kHidden), {kHidden});
    inv_freq_ = exec.upload<float>(random_values(6, 8), {8});
    view_ = allocate_kv_view(exec, formats, {8, 16, 2, 16}).value();
  }

  // Runs a step, and returns the address of its last result.
  const float* step() {
    const StepBatch batch = upload(exec_, host_);
    Tensor x = gather_rows(exec_, embedding_, batch.token_ids, {});
    const Tensor qkv = linear(exec_, x, qkv_, {});  // [tokens, 64 q + 32 k + 32 v]
    const Tensor angles = rope_angles(exec_, batch.positions, inv_freq_, {});
    const Tensor qk = rope(exec_, qkv.slice(1, 0, 96).split_last(6, 16), angles, {});
    const Tensor q = qk.slice(1, 0, 4);
    view_ =
        kv_write(exec_, view_, qk.slice(1, 4, 6), qkv.slice(1, 96, 128).split_last(2, 16), batch);
    const Tensor mixed = attention(exec_, q, view_, batch, {.scale = 0.25f});
    AddRmsNormResult sum = add_rms_norm(exec_, x, mixed, norm_, {});
    const auto [gate, up] = halves_of(linear(exec_, sum.normed, gate_up_, {}));
    const Tensor inner = glu(exec_, gate, up, {});
    x = add_rms_norm(exec_, sum.sum, linear(exec_, inner, down_, {}), norm_, {}).normed;
    return select_rows(exec_, x, batch.logits_rows).data<float>();
  }

 private:
  static constexpr int kHidden = 64, kInner = 96;
  Exec& exec_;
  HostBatch& host_;
  Weight embedding_, qkv_, gate_up_, down_;
  Tensor norm_, inv_freq_;
  KvView view_;
};

// Makes three decodes and a chunk of 20 tokens.
HostBatch make_batch() {
  HostBatch host;
  host.context_lens = {5, 17, 33, 20};
  host.num_decodes = 3;
  host.max_blocks = 3;
  host.block_tables = {0, 0, 0, 1, 2, 0, 3, 4, 5, 6, 7, 0};
  for (int seq = 0; seq < 4; ++seq) {
    host.query_start.push_back(host.num_tokens());
    for (int p = seq < 3 ? host.context_lens[seq] - 1 : 0; p < host.context_lens[seq]; ++p) {
      host.token_ids.push_back(7 * p % 100);
      host.positions.push_back(p);
      host.slot_mapping.push_back(host.block_tables[seq * 3 + p / 16] * 16 + p % 16);
    }
    host.logits_rows.push_back(host.num_tokens() - 1);
  }
  host.query_start.push_back(host.num_tokens());
  return host;
}

TEST(SteadyState, AStepAllocatesNothingAndTakesTheSameAddresses) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    for (const KvFormats& formats : kKvCaseFormats) {
      const auto exec = make_exec({.backend = backend, .num_threads = 2}).value();
      HostBatch host = make_batch();
      Layer layer(*exec, host, formats);
      const float* const address = layer.step();
      const std::size_t before = testing::num_news();
      for (int step = 0; step < 100; ++step) ASSERT_EQ(layer.step(), address);
      EXPECT_EQ(testing::num_news(), before) << backend_name(backend) << " " << name_of(formats);
    }
  }
}

}  // namespace
}  // namespace pagoda
