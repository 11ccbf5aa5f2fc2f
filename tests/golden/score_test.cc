// Compares scores of pairs of texts with those of transformers, recorded by
// tools/make_score_goldens.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "serving/served_model.h"
#include "tests/golden/golden_case.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda::golden {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json read_golden_file() {
  std::ifstream file(kData + "scores.json");
  return json::parse(file);
}

// Writes a checkpoint with another head, in the form in which transformers saves a one-class
// classifier.
void write_classifier(const json& golden, const std::string& folder) {
  const fs::path source = kData + golden.at("model").get<std::string>();
  const Checkpoint whole = *Checkpoint::open(source.string());
  testing::SafetensorsWriter writer;
  for (const std::string& name : whole.names()) {
    if (name == "lm_head.weight") continue;
    const HostTensor tensor = *whole.tensor(name);
    writer.add_raw(name, tensor.shape, traits_of(tensor.format).name,
                   {tensor.bytes.begin(), tensor.bytes.end()});
  }
  const auto weights = golden.at("weights").get<std::vector<float>>();
  writer.add("score.weight", {1, static_cast<std::int64_t>(weights.size())}, WeightFormat::kBF16,
             weights);
  writer.write(folder + "/model.safetensors");
  std::ifstream file(source / "config.json");
  json config = json::parse(file);
  auto name = config.at("architectures").at(0).get<std::string>();
  config["architectures"] = {
      name.replace(name.find("ForCausalLM"), std::string::npos, "ForSequenceClassification")};
  std::ofstream(folder + "/config.json") << config;
  fs::copy_file(source / "tokenizer.json", fs::path(folder) / "tokenizer.json");
}

TEST(Scores, AreThoseOfTransformers) {
  const json file = read_golden_file();
  for (const Backend backend : backends_here()) {
    double largest = 0;
    for (const json& golden : file.at("goldens")) {
      const testing::TemporaryFolder folder;
      write_classifier(golden, folder.path());
      const auto model = load_served_model(
          {.path = folder.path(),
           .engine = {.backend = backend,
                      .max_model_len = 512,
                      .kv_cache_formats = KvFormats{KvFormat::kFloat32, KvFormat::kFloat32}}});
      ASSERT_TRUE(model.ok()) << model.status().message();
      const ServedModel& served = **model;
      ASSERT_TRUE(served.score_format.has_value());
      for (std::size_t i = 0; i < golden.at("token_ids").size(); ++i) {
        GenerationRequest request = {.prompt_token_ids = golden.at("token_ids").at(i)};
        ask_for_embedding(Pooling::kLast, request);
        const double score =
            served.score_format->score(run_to_end(*served.engine, request).embedding);
        largest = std::max(largest, std::abs(score - golden.at("scores").at(i).get<double>()));
      }
      EXPECT_FALSE(
          run_to_end(*served.engine, GenerationRequest{.prompt_token_ids = {5}}).error.ok());
      EXPECT_FALSE(served.no_embeddings.ok());
    }
    fmt::print("scores on {}: at most {:.6f} apart\n", backend_name(backend), largest);
    EXPECT_LT(largest, 0.001) << backend_name(backend);
  }
}

TEST(Scores, PairsHaveTheTokensOfTransformers) {
  const json file = read_golden_file();
  const auto query = file.at("query").get<std::string>();
  for (const json& golden : file.at("goldens")) {
    const auto tokenizer =
        Tokenizer::from_folder(kData + golden.at("model").get<std::string>()).value();
    const PairParts parts = tokenizer->pair_parts().value();
    for (std::size_t i = 0; i < golden.at("token_ids").size(); ++i) {
      std::vector<int> ids = parts.before;
      const auto append = [&](const std::vector<int>& more) {
        ids.insert(ids.end(), more.begin(), more.end());
      };
      constexpr EncodeOptions kBare = {.add_special_tokens = false};
      append(tokenizer->encode(query, kBare).value());
      append(parts.between);
      append(tokenizer->encode(file.at("documents").at(i).get<std::string>(), kBare).value());
      append(parts.after);
      EXPECT_EQ(ids, golden.at("token_ids").at(i).get<std::vector<int>>()) << golden.at("model");
    }
  }
}

}  // namespace
}  // namespace pagoda::golden
