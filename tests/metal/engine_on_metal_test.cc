// Tests a whole engine over the stand-in for costs that a user of an Apple GPU would not notice.
#include <gtest/gtest.h>
#include <mlx/memory.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sampling/token_rules.h"
#include "tests/metal/stand_in.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

const std::string kData = testing::source_path("tests/golden/data/");

std::unique_ptr<Engine> open_on_metal(const std::string& model, EngineOptions options = {}) {
  options.backend = Backend::kMlx;
  return open_engine(kData + model, options);
}

// Returns requests that together use all ops on logits.
std::vector<GenerationRequest> requests_of_all_kinds(int vocab_size) {
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 7; ++i) {
    requests.push_back({.prompt_token_ids = {5 + i, 9, 7},
                        .sampling = {.temperature = i % 2 == 0 ? 0.0f : 1.0f,
                                     .seed = i,
                                     .max_tokens = 6,
                                     .ignore_eos = true}});
  }
  const std::vector<int> allowed = {3, 4, 5, 6, 7, 8, 9};
  requests[0].prompt_token_ids.assign(600, 11);  // attention splits a context of this length
  requests[1].sampling.top_k = 20;
  requests[1].sampling.top_p = 0.9f;
  requests[2].sampling.frequency_penalty = 0.5f;
  requests[2].sampling.logprobs = 3;
  requests[3].sampling.n = 3;
  requests[4].sampling.prompt_logprobs = 1;
  requests[5].sampling.token_rules =
      std::make_shared<TokenRules>(TokenRules{.logit_bias = {{7, 2.0f}},
                                              .allowed_tokens = mask_of(allowed, vocab_size),
                                              .bad_words = {{3, 4}}});
  requests[6].sampling.min_p = 0.1f;
  return requests;
}

struct CachedModel {
  std::string model;
  KvFormats formats = {KvFormat::kBFloat16, KvFormat::kBFloat16};
};

class EngineOnMetal : public ::testing::TestWithParam<CachedModel> {};

TEST_P(EngineOnMetal, NoKernelIsBuiltInTheMiddleOfAStep) {
  const auto engine = open_on_metal(
      GetParam().model, {.max_model_len = 1024, .kv_cache_formats = GetParam().formats});
  for (const WholeAnswer& answer :
       run_to_end(*engine, requests_of_all_kinds(engine->limits().vocab_size)))
    EXPECT_NE(answer.finish_reason, FinishReason::kError) << answer.error.message();
  EXPECT_EQ(stats_at_rest(*engine).runner.exec.num_late_kernels, 0u);
}

constexpr KvFormats kInt8 = {KvFormat::kInt8, KvFormat::kInt8};
constexpr KvFormats kInt8AndInt4 = {KvFormat::kInt8, KvFormat::kInt4};

INSTANTIATE_TEST_SUITE_P(
    Models, EngineOnMetal,
    ::testing::Values(CachedModel{"tiny-llama"}, CachedModel{"tiny-llama-affine"},
                      CachedModel{"tiny-qwen2"}, CachedModel{"tiny-qwen3"},
                      CachedModel{"tiny-gemma2"}, CachedModel{"tiny-gemma4"},
                      CachedModel{"tiny-gemma4", kInt8}, CachedModel{"tiny-phi3"},
                      CachedModel{"tiny-llama", kInt8}, CachedModel{"tiny-llama", kInt8AndInt4}),
    [](const auto& info) {
      std::string name = info.param.model + "_" +
                         std::string(kv_format_name(info.param.formats.keys)) + "_" +
                         std::string(kv_format_name(info.param.formats.values));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Log-probabilities may differ only because rounding before quantization may change a KV code.
TEST(CodesOnMetal, GiveThePromptTheReferencesLogprobs) {
  GenerationRequest request = {.sampling = {.temperature = 0, .max_tokens = 1}};
  for (int i = 0; i < 120; ++i) request.prompt_token_ids.push_back((i * 37 + 11) % 500);
  request.sampling.prompt_logprobs = 0;
  for (const KvFormats& formats : {kInt8, kInt8AndInt4}) {
    const EngineOptions options = {.max_model_len = 256, .kv_cache_formats = formats};
    EngineOptions by_reference = options;
    by_reference.backend = Backend::kReference;
    const auto reference = open_engine(kData + "tiny-qwen3", by_reference);
    const auto engine = open_on_metal("tiny-qwen3", options);
    const auto expected = run_to_end(*reference, request).prompt_logprobs;
    const auto actual = run_to_end(*engine, request).prompt_logprobs;
    ASSERT_EQ(actual.size(), request.prompt_token_ids.size());
    for (std::size_t i = 1; i < actual.size(); ++i)
      EXPECT_NEAR(actual[i]->chosen.logprob, expected[i]->chosen.logprob, 0.002f) << i;
  }
}

TEST(StepsOnMetal, CopyNothingAndKeepTheirMemory) {
  const auto engine =
      open_on_metal("tiny-llama", {.max_model_len = 512, .enable_prefix_caching = true});
  mlx::stand_in::reset_counts();
  GenerationRequest request = {
      .prompt_token_ids = std::vector<int>(40, 9),
      .sampling = {.temperature = 1, .seed = 3, .n = 3, .max_tokens = 350, .ignore_eos = true}};
  std::size_t memory = 0;
  std::uint64_t num_samples = 0;
  for (int round = 0; round < 3; ++round) {
    num_samples += run_to_end(*engine, std::vector{request}).size();
    const std::size_t now = ::mlx::core::get_active_memory();
    if (round > 0) {
      EXPECT_LE(now, memory);
    }
    memory = now;
  }
  const EngineStats stats = stats_at_rest(*engine);
  const mlx::stand_in::Counts counts = mlx::stand_in::counts();
  EXPECT_GT(stats.num_steps, 1000u);
  EXPECT_GT(stats.num_lookahead_steps, 1000u);
  EXPECT_GT(stats.num_prefix_hits, 0u);
  EXPECT_GT(stats.num_block_copies, 0u);  // the prompt's last block, for each sample
  EXPECT_EQ(stats.runner.exec.num_evaluations, stats.num_steps);
  // The three samples of a request share the row of its prompt.
  EXPECT_EQ(stats.runner.num_logits_rows, 350 * num_samples - 2 * 3);
  EXPECT_EQ(counts.foreign_inputs, 0u);
  EXPECT_EQ(counts.foreign_bytes, 0u) << "MLX has copied something";
  EXPECT_EQ(counts.idle_closes, 0u);
}

// Blocks are saved to files from memory that the GPU writes, and read back to it. They keep their
// bits, and only steps are evaluated.
TEST(StepsOnMetal, ReadBlocksOfADiskAsTheyWereWritten) {
  const testing::TemporaryFolder folder;
  const EngineOptions options = {.max_model_len = 512, .prefix_cache_dir = folder / "cache"};
  GenerationRequest request = {.prompt_token_ids = {},
                               .sampling = {.temperature = 0, .max_tokens = 4, .ignore_eos = true},
                               .hash_logits = true};
  for (int i = 0; i < 100; ++i) request.prompt_token_ids.push_back(4 + i * 7 % 500);
  auto engine = open_on_metal("tiny-llama", options);
  const WholeAnswer computed = run_to_end(*engine, request);
  engine = nullptr;
  engine = open_on_metal("tiny-llama", options);
  const std::uint64_t num_evaluations = stats_at_rest(*engine).runner.exec.num_evaluations;
  const WholeAnswer read = run_to_end(*engine, request);
  EXPECT_EQ(read.token_ids, computed.token_ids);
  EXPECT_EQ(read.logits_hash, computed.logits_hash);
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_EQ(stats.tier.num_read, 6u);
  EXPECT_EQ(stats.runner.exec.num_evaluations - num_evaluations, stats.num_steps);
}

}  // namespace
}  // namespace pagoda
