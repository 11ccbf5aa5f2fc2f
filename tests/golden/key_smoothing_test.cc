// Models whose keys are hard to quantise, made from the tiny checkpoints. Tests the error of
// quantised keys compared with the plain models, and that smoothing keys at load changes no float
// result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>

#include "core/json.h"
#include "engine/assemble.h"
#include "engine/threaded_engine.h"
#include "tests/golden/golden_case.h"
#include "tests/support/affine_writer.h"
#include "tests/support/hf_to_gguf.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using golden::kData;
using testing::SafetensorsWriter;
using testing::TemporaryFolder;

constexpr std::uint64_t kSeed = 20261125;
constexpr KvFormats kFloat32 = {KvFormat::kFloat32, KvFormat::kFloat32};
constexpr KvFormats kInt8 = {KvFormat::kInt8, KvFormat::kInt8};
constexpr KvFormats kK8v4 = {KvFormat::kInt8, KvFormat::kInt4};
constexpr KvFormats kInt4 = {KvFormat::kInt4, KvFormat::kInt4};

// Changes a tensor's values [rows, cols], or [rows].
using Change = std::function<void(const std::string& name, std::int64_t cols, std::span<float>)>;

// Rewrites a tiny checkpoint with changed tensors; returns its folder.
std::string write_changed(const TemporaryFolder& folder, const std::string& model,
                          const Change& change) {
  const Checkpoint checkpoint = Checkpoint::open(kData + model).value();
  SafetensorsWriter writer;
  for (const std::string& name : checkpoint.names()) {
    const HostTensor tensor = checkpoint.tensor(name).value();
    std::vector<float> values(tensor.shape.num_elements());
    traits_of(tensor.format).dequantize(tensor.bytes, values.data());
    change(name, tensor.shape.rank() == 2 ? tensor.shape[1] : 1, values);
    writer.add(name, tensor.shape, tensor.format, values);
  }
  std::filesystem::copy_file(kData + model + "/config.json", folder / "config.json");
  writer.write(folder / "model.safetensors");
  return folder.path();
}

// Multiplies the rows of one rotary pair, a row of each half, in every head.
void scale_pair(std::span<float> values, std::int64_t cols, int head_dim, int pair, float factor) {
  const auto rows = static_cast<std::int64_t>(values.size()) / cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % head_dim % (head_dim / 2) != pair) continue;
    for (float& value : values.subspan(row * cols, cols)) value *= factor;
  }
}

std::vector<GenerationRequest> random_requests(int vocab_size) {
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int> token(4, vocab_size - 1);
  std::vector<GenerationRequest> requests(4);
  for (GenerationRequest& request : requests) {
    request.prompt_token_ids.resize(120);
    for (int& id : request.prompt_token_ids) id = token(random);
    request.sampling = {
        .temperature = 0, .max_tokens = 4, .ignore_eos = true, .prompt_logprobs = 0};
    request.hash_logits = true;
  }
  return requests;
}

EngineOptions options_of(Backend backend, const KvFormats& formats) {
  return {.backend = backend,
          .num_threads = 1,
          .max_model_len = 128,
          .max_num_seqs = 4,
          .kv_cache_formats = formats};
}

std::vector<WholeAnswer> answers_of(Engine& engine) {
  return run_to_end(engine, random_requests(engine.limits().vocab_size));
}

std::vector<WholeAnswer> answers_of(const std::string& path, Backend backend,
                                    const KvFormats& formats) {
  return answers_of(*open_engine(path, options_of(backend, formats)));
}

std::vector<std::uint64_t> hashes_of(const std::vector<WholeAnswer>& answers) {
  std::vector<std::uint64_t> hashes;
  for (const WholeAnswer& answer : answers) {
    EXPECT_TRUE(answer.error.ok()) << answer.error.message();
    hashes.push_back(answer.logits_hash);
  }
  return hashes;
}

// Returns the mean difference of log-probabilities between an int8 cache and a float32 cache.
double int8_error(const std::string& path, Backend backend) {
  const std::vector<WholeAnswer> exact = answers_of(path, backend, kFloat32);
  const std::vector<WholeAnswer> coded = answers_of(path, backend, kInt8);
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    for (std::size_t t = 1; t < exact[i].prompt_logprobs.size(); ++t, ++count) {
      sum += std::abs(exact[i].prompt_logprobs[t]->chosen.logprob -
                      coded[i].prompt_logprobs[t]->chosen.logprob);
    }
  }
  EXPECT_GT(count, 100);
  return sum / static_cast<double>(count);
}

void expect_error_within(double factor, const std::string& harder, const std::string& plain,
                         Backend backend) {
  const double harder_error = int8_error(harder, backend), plain_error = int8_error(plain, backend);
  std::cout << fmt::format("seed {}; int8's mean error on {}: plain {:.5f}, harder {:.5f}\n", kSeed,
                           backend_name(backend), plain_error, harder_error);
  EXPECT_GT(plain_error, 0);
  EXPECT_LE(harder_error, factor * plain_error);
}

// Opens an engine with a float cache, whose keys are smoothed as for a quantised one.
Result<std::unique_ptr<Engine>> open_smoothed(const std::string& path, Backend backend) {
  return ThreadedEngine::start([path, backend]() -> Result<EngineParts> {
    PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
    PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(checkpoint));
    return assemble(checkpoint, config, options_of(backend, kFloat32), {}, [&](RunnerParts parts) {
      KvLayout layout = parts.kv.layout();
      for (LayerKvLayout& layer : layout.layers) layer.formats = kInt8;
      parts.decoder = Decoder::load(*parts.exec, checkpoint, config, layout).value();
      return make_model_runner(std::move(parts));
    });
  });
}

void expect_smoothing_keeps_floats(const std::string& path, Backend backend) {
  const std::unique_ptr<Engine> smoothed = open_smoothed(path, backend).value();
  EXPECT_EQ(hashes_of(answers_of(*smoothed)), hashes_of(answers_of(path, backend, kFloat32)));
}

class KeySmoothing : public ::testing::TestWithParam<Backend> {};

std::string write_large_pairs(const TemporaryFolder& folder) {
  return write_changed(folder, "tiny-llama",
                       [](const std::string& name, std::int64_t cols, std::span<float> rows) {
                         for (const int pair : {2, 5}) {
                           if (name.ends_with("k_proj.weight"))
                             scale_pair(rows, cols, 16, pair, 16);
                           if (name.ends_with("q_proj.weight"))
                             scale_pair(rows, cols, 16, pair, 1.0f / 16);
                         }
                       });
}

TEST_P(KeySmoothing, TwoLargePairsOfKeysCostLittle) {
  const TemporaryFolder folder;
  const std::string harder = write_large_pairs(folder);
  ASSERT_EQ(hashes_of(answers_of(harder, Backend::kReference, kFloat32)),
            hashes_of(answers_of(kData + "tiny-llama", Backend::kReference, kFloat32)));
  expect_error_within(4, harder, kData + "tiny-llama", GetParam());
}

std::string write_large_norms(const TemporaryFolder& folder) {
  return write_changed(folder, "tiny-qwen3",
                       [](const std::string& name, std::int64_t cols, std::span<float> norm) {
                         for (const int pair : {1, 11}) {
                           if (name.ends_with("k_norm.weight"))
                             scale_pair(norm, cols, 32, pair, 16);
                           if (name.ends_with("q_norm.weight"))
                             scale_pair(norm, cols, 32, pair, 1.0f / 16);
                         }
                       });
}

// Writes Gemma 4, in which queries of late layers read the keys of earlier ones.
std::string write_large_shared_norms(const TemporaryFolder& folder) {
  return write_changed(folder, "tiny-gemma4",
                       [](const std::string& name, std::int64_t cols, std::span<float> norm) {
                         for (const int pair : {1, 6}) {
                           const int head_dim = static_cast<int>(norm.size());
                           if (name.ends_with("k_norm.weight"))
                             scale_pair(norm, cols, head_dim, pair, 16);
                           if (name.ends_with("q_norm.weight"))
                             scale_pair(norm, cols, head_dim, pair, 1.0f / 16);
                         }
                       });
}

// Rewrites the checkpoint of a folder in affine groups of 4 bits.
std::string write_affine(const std::string& source, const TemporaryFolder& folder) {
  constexpr AffineLayout kLayout = {.bits = 4, .group_size = 64};
  const Checkpoint checkpoint = Checkpoint::open(source).value();
  SafetensorsWriter writer;
  for (const std::string& name : checkpoint.names()) {
    const HostTensor tensor = checkpoint.tensor(name).value();
    testing::add_affine_or_plain(writer, tensor, kLayout,
                                 testing::dequantize(tensor.format, tensor.bytes));
  }
  std::ifstream file(source + "/config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  config["quantization"] = {{"bits", kLayout.bits}, {"group_size", kLayout.group_size}};
  std::ofstream(folder / "config.json") << config.dump();
  writer.write(folder / "model.safetensors");
  return folder.path();
}

// Rewrites the checkpoint of a folder as a GGUF file, in which rotary pairs are neighbours.
std::string write_gguf(const std::string& source, WeightFormat format,
                       const TemporaryFolder& folder) {
  const std::string path = folder / (std::string(traits_of(format).name) + ".gguf");
  testing::to_gguf(testing::open_hf_source(source), 1e4, format).write(path);
  return path;
}

TEST_P(KeySmoothing, LargePairsAreBalancedInWhateverFormat) {
  const TemporaryFolder folder, plain_folder, affine, plain_affine;
  const std::string plain = kData + "tiny-llama", harder = write_large_pairs(folder);
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4_0,
                                    WeightFormat::kQ4_1, WeightFormat::kIQ4_NL}) {
    SCOPED_TRACE(traits_of(format).name);
    const std::string file = write_gguf(harder, format, folder);
    expect_smoothing_keeps_floats(file, GetParam());
    expect_error_within(1.5, file, write_gguf(plain, format, plain_folder), GetParam());
  }
  SCOPED_TRACE("affine groups");
  expect_smoothing_keeps_floats(write_affine(harder, affine), GetParam());
  expect_error_within(1.5, affine.path(), write_affine(plain, plain_affine), GetParam());
}

TEST_P(KeySmoothing, LargePairsOfNormsChangeNoBitOfCodes) {
  const TemporaryFolder qwen, gemma;
  for (const auto& [harder, plain] : {std::pair(write_large_norms(qwen), "tiny-qwen3"),
                                      {write_large_shared_norms(gemma), "tiny-gemma4"}}) {
    for (const KvFormats& formats : {kInt8, kK8v4, kInt4}) {
      EXPECT_EQ(hashes_of(answers_of(harder, GetParam(), formats)),
                hashes_of(answers_of(kData + plain, GetParam(), formats)))
          << plain << ", " << kv_formats_name(formats);
    }
  }
}

TEST_P(KeySmoothing, BalancedPairsChangeNoBitOfFloats) {
  for (const auto& write_harder :
       {write_large_norms, write_large_shared_norms, write_large_pairs}) {
    const TemporaryFolder folder;
    expect_smoothing_keeps_floats(write_harder(folder), GetParam());
  }
}

// Returns the root mean square of the values.
float rms(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

// Writes tiny-qwen2 with a bias of 14 times the keys' size on their slowest pair. Keys of that pair
// are multiplied by `factor`, and queries divided by it.
std::string write_large_bias(const TemporaryFolder& folder, float factor) {
  constexpr std::int64_t kHidden = 64;
  constexpr int kHeadDim = 16, kSlowest = kHeadDim / 2 - 1;
  float largest_rms = 0;  // of keys: about their rows' lengths, since inputs are normed
  write_changed(TemporaryFolder(), "tiny-qwen2",
                [&](const std::string& name, std::int64_t, std::span<float> rows) {
                  if (name.ends_with("k_proj.weight"))
                    largest_rms = std::max(largest_rms, rms(rows) * std::sqrt(float{kHidden}));
                });
  return write_changed(folder, "tiny-qwen2",
                       [&](const std::string& name, std::int64_t cols, std::span<float> rows) {
                         if (name.ends_with("k_proj.bias")) {
                           for (std::size_t i = 0; i < rows.size(); ++i) {
                             if (i % (kHeadDim / 2) == kSlowest) rows[i] = 14 * largest_rms;
                           }
                         }
                         const bool is_key = name.find("k_proj") != std::string::npos;
                         if (is_key || name.find("q_proj") != std::string::npos)
                           scale_pair(rows, cols, kHeadDim, kSlowest, is_key ? factor : 1 / factor);
                       });
}

TEST_P(KeySmoothing, ALargeBiasOfKeysCostsLittle) {
  for (const float factor : {1.0f, 16.0f}) {
    const TemporaryFolder folder;
    const std::string harder = write_large_bias(folder, factor);
    expect_error_within(1.5, harder, kData + "tiny-qwen2", GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(All, KeySmoothing, ::testing::ValuesIn(backends_here()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda
