// Compares embeddings with those of sentence-transformers, recorded by
// tools/make_embedding_goldens.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "quant/weight_format.h"
#include "tests/golden/golden_case.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint.h"

namespace pagoda::golden {
namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

Pooling pooling_of(const std::string& name) {
  if (name == "mean") return Pooling::kMean;
  return name == "cls" ? Pooling::kFirst : Pooling::kLast;
}

struct Likeness {
  double cosine = 0;
  double length_ratio = 0;
};

Likeness likeness(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, a_square = 0, b_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    a_square += double{a[i]} * a[i];
    b_square += double{b[i]} * b[i];
  }
  return {product / std::sqrt(a_square * b_square), std::sqrt(a_square / b_square)};
}

// Returns the least cosine with the golden embeddings, which were computed in float32.
double least_cosine(Backend backend, const std::optional<KvFormats>& formats) {
  double least = 1;
  int count = 0;
  const json file = read_json(kData + "embeddings.json");
  for (const json& golden : file.at("goldens")) {
    const auto engine =
        open_engine(kData + golden.at("model").get<std::string>(),
                    {.backend = backend, .max_model_len = 512, .kv_cache_formats = formats});
    if (engine == nullptr) return 0;
    for (std::size_t i = 0; i < golden.at("token_ids").size(); ++i) {
      GenerationRequest request = {.prompt_token_ids = golden.at("token_ids").at(i)};
      ask_for_embedding(pooling_of(golden.at("pooling")), request);
      const std::vector<float> embedding = run_to_end(*engine, request).embedding;
      const auto expected = golden.at("embeddings").at(i).get<std::vector<float>>();
      if (embedding.size() != expected.size()) return 0;
      const Likeness like = likeness(embedding, expected);
      EXPECT_NEAR(like.length_ratio, 1, 0.01) << golden.at("model") << golden.at("pooling");
      least = std::min(least, like.cosine);
      ++count;
    }
  }
  EXPECT_EQ(count, 54);
  return least;
}

// A cache in bfloat16 rounds keys and values. sentence-transformers itself reaches 0.9993 if it
// computes in the checkpoints' own bfloat16.
TEST(Embeddings, AgreeWithSentenceTransformers) {
  for (const Backend backend : backends_here()) {
    const double exact = least_cosine(backend, KvFormats{KvFormat::kFloat32, KvFormat::kFloat32});
    const double usual = least_cosine(backend, std::nullopt);
    fmt::print("embeddings on {}: the least cosine is {:.6f}, with the usual cache {:.6f}\n",
               backend_name(backend), exact, usual);
    EXPECT_GE(exact, 0.9999) << backend_name(backend);
    EXPECT_GE(usual, 0.9995) << backend_name(backend);
  }
}

// Writes tiny-llama in the form in which libraries save a model without its head.
void write_bare(const std::string& folder) {
  const std::filesystem::path source = kData + "tiny-llama";
  const Checkpoint whole = *Checkpoint::open(source.string());
  testing::SafetensorsWriter writer;
  for (const std::string& name : whole.names()) {
    if (!name.starts_with("model.")) continue;
    const HostTensor tensor = *whole.tensor(name);
    writer.add_raw(name.substr(6), tensor.shape, traits_of(tensor.format).name,
                   {tensor.bytes.begin(), tensor.bytes.end()});
  }
  writer.write(folder + "/model.safetensors");
  json config = read_json((source / "config.json").string());
  config["architectures"] = {"LlamaModel"};
  std::ofstream(folder + "/config.json") << config;
}

TEST(Embeddings, AModelWithoutItsHeadMakesThemAlone) {
  const testing::TemporaryFolder bare;
  write_bare(bare.path());
  GenerationRequest request = {.prompt_token_ids = {5, 6, 7, 8}};
  ask_for_embedding(Pooling::kMean, request);
  for (const Backend backend : backends_here()) {
    const auto whole = open_engine(kData + "tiny-llama", {.backend = backend});
    const auto headless = open_engine(bare.path(), {.backend = backend});
    ASSERT_NE(headless, nullptr);
    const std::vector<float> embedding = run_to_end(*headless, request).embedding;
    ASSERT_EQ(embedding.size(), 64u);
    EXPECT_EQ(embedding, run_to_end(*whole, request).embedding);
    const WholeAnswer refused = run_to_end(*headless, GenerationRequest{.prompt_token_ids = {5}});
    EXPECT_EQ(refused.error.message(),
              "[request] this checkpoint makes no texts: it has no head for tokens");
  }
}

}  // namespace
}  // namespace pagoda::golden
