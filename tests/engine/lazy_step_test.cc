// A step is one graph. A lazy backend evaluates it once, and the entries of its tokens are in the
// cache even if the step samples nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "backend/backend.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "tests/support/open_engine.h"
#include "weights/checkpoint.h"

namespace pagoda {
namespace {

constexpr int kBlockSize = 8;
constexpr int kNumBlocks = 8;

// A tiny checkpoint on one backend, and one sequence whose blocks are taken from the pool's end.
struct Model {
  std::unique_ptr<Exec> exec;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<KvStore> kv;
  HostBatch host;

  void plan(int first_position, int count, bool samples) {
    host.clear();
    for (int position = first_position; position < first_position + count; ++position) {
      host.token_ids.push_back(position * 7 % 500);
      host.positions.push_back(position);
      const int block = kNumBlocks - 1 - position / kBlockSize;
      host.slot_mapping.push_back(block * kBlockSize + position % kBlockSize);
    }
    host.query_start = {0, count};
    host.context_lens = {first_position + count};
    host.max_blocks = kNumBlocks;
    for (int block = kNumBlocks - 1; block >= 0; --block) host.block_tables.push_back(block);
    host.num_decodes = count == 1 ? 1 : 0;
    if (samples) host.logits_rows.push_back(count - 1);
  }

  // Starts the planned step; its logits are undefined if it samples nothing.
  Tensor forward() {
    const StepBatch batch = upload(*exec, host);
    const HiddenState state = decoder->forward(*exec, batch, *kv);
    std::vector<Tensor> roots;
    for (const KvView& view : kv->views()) {
      for (const Tensor& array : view.arrays()) roots.push_back(array);
    }
    Tensor logits;
    if (batch.num_rows > 0) {
      logits = decoder->logits(*exec, state, batch.logits_rows);
      roots.push_back(logits);
    }
    EXPECT_TRUE(exec->evaluate(roots).ok());
    return logits;
  }

  std::vector<float> read(const Tensor& tensor) {
    const auto bytes = exec->read(tensor);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    std::vector<float> values(tensor.num_elements());
    if (bytes.ok()) std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }
};

Model make_model(Backend backend) {
  Model model;
  model.exec = make_exec({.backend = backend, .num_threads = 1}).value();
  const Checkpoint checkpoint = Checkpoint::open(kTinyLlama).value();
  const ModelConfig config = read_model_config(checkpoint).value();
  KvLayout layout{.block_size = kBlockSize, .layers = {}};
  for (int layer = 0; layer < config.num_layers(); ++layer) {
    layout.layers.push_back({.formats = {},
                             .num_kv_heads = config.layers[layer].attention().num_kv_heads,
                             .head_dim = config.layers[layer].attention().head_dim,
                             .window = 0});
  }
  model.decoder =
      std::make_unique<Decoder>(Decoder::load(*model.exec, checkpoint, config, layout).value());
  model.kv = std::make_unique<KvStore>(KvStore::create(*model.exec, layout, kNumBlocks).value());
  return model;
}

void expect_close(const std::vector<float>& values, const std::vector<float>& expected,
                  const std::string& what) {
  ASSERT_EQ(values.size(), expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::fabs(value));
  EXPECT_GT(largest, 0) << what << ": nothing was computed";
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], 0.05f * largest) << what;
}

class LazyStep : public ::testing::TestWithParam<Backend> {};

TEST_P(LazyStep, StepsThatSampleNothingFillTheLastLayersCache) {
  Model reference = make_model(Backend::kReference);
  Model model = make_model(GetParam());
  const auto last_layer = [](Model& m) { return m.kv->views().back(); };
  const std::byte* address = model.exec->read(last_layer(model).keys.elements)->data();
  // Two chunks; the second is started while the first may still be running.
  for (Model* each : {&reference, &model}) {
    each->plan(0, 11, /*samples=*/false);
    each->forward();
    each->plan(11, 9, /*samples=*/false);
    each->forward();
  }
  expect_close(model.read(last_layer(model).keys.elements),
               reference.read(last_layer(reference).keys.elements), "keys");
  expect_close(model.read(last_layer(model).values.elements),
               reference.read(last_layer(reference).values.elements), "values");
  EXPECT_EQ(model.exec->read(last_layer(model).keys.elements)->data(), address);
  EXPECT_EQ(model.exec->counters().num_evaluations, GetParam() == Backend::kMlx ? 2u : 0u);
}

TEST_P(LazyStep, AStepIsOneEvaluation) {
  Model reference = make_model(Backend::kReference);
  Model model = make_model(GetParam());
  for (int step = 0; step < 10; ++step) {
    std::vector<std::vector<float>> logits;
    for (Model* each : {&reference, &model}) {
      each->plan(step == 0 ? 0 : 4 + step, step == 0 ? 5 : 1, /*samples=*/true);
      logits.push_back(each->read(each->forward()));
    }
    expect_close(logits[1], logits[0], fmt::format("step {}", step));
    EXPECT_EQ(model.exec->counters().num_evaluations, GetParam() == Backend::kMlx ? step + 1u : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LazyStep, ::testing::ValuesIn(backends_here()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda
