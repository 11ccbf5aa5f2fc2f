// Embeddings as the engine makes them: means or rows of the hidden states that give the logits.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

std::unique_ptr<Engine> open_model(const std::string& path, int max_num_batched_tokens = 0) {
  EngineOptions options;
  options.backend = Backend::kCpu;
  options.max_model_len = 256;
  options.max_num_batched_tokens = max_num_batched_tokens;
  return open_engine(path, options);
}

TEST(Pooling, PoolsTheHiddenStatesThatLogitsComeFrom) {
  constexpr int kNumTokens = 150;  // more than a tile of rows
  const auto engine = open_model(kTinyLlama);
  GenerationRequest request;
  for (int i = 0; i < kNumTokens; ++i) request.prompt_token_ids.push_back(4 + i * 3 % 200);
  const auto pooled = [&](Engine& by, Pooling pooling) {
    ask_for_embedding(pooling, request);
    WholeAnswer answer = run_to_end(by, request);
    EXPECT_TRUE(answer.error.ok()) << answer.error.message();
    EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
    EXPECT_TRUE(answer.token_ids.empty());
    return std::move(answer.embedding);
  };
  const std::vector<float> mean = pooled(*engine, Pooling::kMean);
  const std::vector<float> first = pooled(*engine, Pooling::kFirst);
  const std::vector<float> last = pooled(*engine, Pooling::kLast);
  ASSERT_EQ(mean.size(), 64u);
  EXPECT_NE(first, last);
  // The last token of each prefix gives a row of the whole prompt.
  std::vector<double> sum(mean.size());
  const std::vector<int> whole = request.prompt_token_ids;
  for (int length = 1; length <= kNumTokens; ++length) {
    request.prompt_token_ids.assign(whole.begin(), whole.begin() + length);
    const std::vector<float> row = pooled(*engine, Pooling::kLast);
    if (length == 1) {
      EXPECT_EQ(row, first);
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    EXPECT_EQ(mean[i], static_cast<float>(sum[i] / kNumTokens));
  EXPECT_EQ(pooled(*open_model(kTinyLlama, 7), Pooling::kMean), mean);
}

// Writes tiny-llama with a token whose embedding is infinite or a NaN.
void write_checkpoint_without_number(const testing::TemporaryFolder& folder, int token_id) {
  std::filesystem::copy_file(kTinyLlama + "/config.json", folder / "config.json");
  const std::string path = folder / "model.safetensors";
  std::filesystem::copy_file(kTinyLlama + "/model.safetensors", path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t header_size = 0;
  file.read(reinterpret_cast<char*>(&header_size), sizeof(header_size));
  std::string header(header_size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const auto embedding = nlohmann::json::parse(header)["model.embed_tokens.weight"];
  const std::size_t begin = embedding["data_offsets"][0];
  const std::size_t size = embedding["data_offsets"][1].get<std::size_t>() - begin;
  const std::size_t row_size = size / embedding["shape"][0].get<std::size_t>();
  file.seekp(
      static_cast<std::streamoff>(sizeof(header_size) + header_size + begin + row_size * token_id));
  file.write("\x80\x7f\x80\x7f", 4);  // infinite as bfloat16, a NaN as float32
}

TEST(Pooling, AnEmbeddingThatIsNoNumberIsAnErrorOfItsRequestAlone) {
  const testing::TemporaryFolder folder;
  write_checkpoint_without_number(folder, 9);
  const auto engine = open_model(folder.path());
  for (const Pooling pooling : {Pooling::kFirst, Pooling::kMean, Pooling::kLast}) {
    std::vector<GenerationRequest> requests = {{.prompt_token_ids = {5, 6, 7}},
                                               {.prompt_token_ids = {9, 9, 9}}};
    for (GenerationRequest& request : requests) ask_for_embedding(pooling, request);
    const std::vector<WholeAnswer> answers = run_to_end(*engine, requests);
    EXPECT_TRUE(answers[0].error.ok()) << answers[0].error.message();
    EXPECT_EQ(answers[0].embedding.size(), 64u);
    EXPECT_EQ(answers[1].error.code(), StatusCode::kInternal);
    EXPECT_EQ(answers[1].error.message(), "[embedding] a hidden state is no finite number");
    EXPECT_TRUE(answers[1].embedding.empty());
  }
}

}  // namespace
}  // namespace pagoda
