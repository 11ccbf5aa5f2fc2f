// Checkpoints in MLX's affine groups:
// - one that mlx_lm wrote, compared with golden outputs that MLX computed in float32;
// - the tiny ones, rewritten in groups of every width and compared with themselves, with the
//   groups' values in float32.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/json.h"
#include "tests/golden/golden_case.h"
#include "tests/support/affine_writer.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint.h"

namespace pagoda::golden {
namespace {

using testing::SafetensorsWriter;
using testing::TemporaryFolder;

// The allowed differences of log-probabilities, and the margin under which tokens may differ.
struct AffineBounds {
  float margin;
  double mean;
  double largest;
};
AffineBounds affine_bounds_of(Backend backend) {
  if (backend == Backend::kReference) return {0.01f, 0.001, 0.005};
  return {0.2f, 0.04, 0.5};
}

std::unique_ptr<Engine> open_folder(const std::string& path, Backend backend) {
  return open_engine(path, {.backend = backend, .max_model_len = 512, .max_num_seqs = 4});
}

TEST(AffineCheckpoint, AnswersAsMlxDoesInFloat32) {
  const std::string folder = kData + "tiny-llama-affine";
  const std::vector<GoldenCase> cases = *read_golden_cases(folder + "/golden.json");
  for (const Backend backend : backends_here()) {
    const std::unique_ptr<Engine> engine = open_folder(folder, backend);
    ASSERT_NE(engine, nullptr);
    const AffineBounds bounds = affine_bounds_of(backend);
    Closeness closeness;
    for (const GoldenCase& golden : cases) {
      EXPECT_EQ(compare(*engine, golden, bounds.margin, closeness), "") << backend_name(backend);
    }
    fmt::print(
        "tiny-llama-affine on {}: log-probabilities differ by {:.5f} in the mean, {:.4f} at most\n",
        backend_name(backend), closeness.mean(), closeness.largest);
    EXPECT_GT(closeness.count, 0);
    EXPECT_LE(closeness.mean(), bounds.mean) << backend_name(backend);
    EXPECT_LE(closeness.largest, bounds.largest) << backend_name(backend);
  }
}

// Writes tiny-llama in groups of one layout, and again with the groups' values in float32.
void write_twins(const AffineLayout& layout, const TemporaryFolder& affine,
                 const TemporaryFolder& widened) {
  const Checkpoint source = *Checkpoint::open(kData + "tiny-llama");
  SafetensorsWriter groups, values;
  for (const std::string& name : source.names()) {
    const HostTensor tensor = *source.tensor(name);
    std::vector<float> row_values = testing::dequantize(tensor.format, tensor.bytes);
    if (testing::add_affine_or_plain(groups, tensor, layout, row_values)) {
      const testing::AffineArrays arrays = testing::quantize_affine(layout, row_values);
      dequantize_affine_row({.layout = layout,
                             .codes = arrays.codes,
                             .scales = arrays.scales,
                             .biases = arrays.biases},
                            row_values.data());
    }
    values.add(name, tensor.shape, WeightFormat::kF32, row_values);
  }
  std::ifstream file(kData + "tiny-llama/config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  const auto write_folder = [&config](const SafetensorsWriter& writer, const std::string& folder) {
    writer.write(folder + "/model.safetensors");
    std::ofstream(folder + "/config.json") << config.dump();
  };
  write_folder(values, widened.path());
  config["quantization"] = {{"bits", layout.bits}, {"group_size", layout.group_size}};
  write_folder(groups, affine.path());
}

// Returns the log-probabilities of a prompt's tokens.
std::vector<float> logprobs_of(Engine& engine) {
  std::vector<int> prompt_ids;
  for (int i = 0; i < 40; ++i) prompt_ids.push_back((i * 97 + 5) % 512);
  const WholeAnswer answer =
      run_to_end(engine, {.prompt_token_ids = prompt_ids,
                          .sampling = {.temperature = 0, .max_tokens = 0, .prompt_logprobs = 0}});
  EXPECT_TRUE(answer.error.ok()) << answer.error.message();
  std::vector<float> logprobs;
  for (const auto& entry : answer.prompt_logprobs) {
    if (entry) logprobs.push_back(entry->chosen.logprob);
  }
  EXPECT_EQ(logprobs.size(), 39u);
  return logprobs;
}

TEST(AffineCheckpoint, AnswersAsItsValuesInFloat32Do) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const AffineLayout& layout : {AffineLayout{bits, 32, WeightFormat::kF16},
                                       AffineLayout{bits, 64, WeightFormat::kBF16}}) {
      SCOPED_TRACE(fmt::format("{} bits in groups of {}", bits, layout.group_size));
      const TemporaryFolder affine, widened;
      write_twins(layout, affine, widened);
      const auto expected = logprobs_of(*open_folder(widened.path(), Backend::kReference));
      for (const Backend backend : backends_here()) {
        const auto logprobs = logprobs_of(*open_folder(affine.path(), backend));
        ASSERT_EQ(logprobs.size(), expected.size());
        if (backend == Backend::kReference) {
          EXPECT_EQ(logprobs, expected);
          continue;
        }
        Closeness closeness;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          closeness.add(std::abs(static_cast<double>(logprobs[i]) - expected[i]));
        }
        EXPECT_LE(closeness.mean(), affine_bounds_of(backend).mean) << backend_name(backend);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::golden
