// Batch invariance over formats, chunks, blocks and threads: an answer has the same bits whatever
// is computed beside it, and however its prompt is chunked.
//
// logits_hash covers the bits of every row of logits that a request samples, so equal hashes mean
// equal logits in every step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/default_model.h"
#include "tests/support/hf_to_gguf.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wide_checkpoint.h"
#include "tests/support/windowed_checkpoint.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261120;

std::vector<int> random_prompt(std::mt19937_64& random, int length, int vocab_size) {
  std::uniform_int_distribution<int> token(4, vocab_size - 1);
  std::vector<int> ids(length);
  for (int& id : ids) id = token(random);
  return ids;
}

// Returns sixteen requests of mixed lengths, greedy and sampled, with and without
// log-probabilities.
std::vector<GenerationRequest> mixed_requests(int vocab_size, int longest) {
  std::mt19937_64 random(kSeed);
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 16; ++i) {
    const int length =
        i == 0 ? longest : 1 + static_cast<int>(random() % static_cast<std::uint64_t>(longest));
    GenerationRequest request = {.prompt_token_ids = random_prompt(random, length, vocab_size),
                                 .hash_logits = true};
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.9f,
                        .top_p = 0.95f,
                        .seed = 7 + i,
                        .max_tokens = 6,
                        .ignore_eos = true};
    if (i % 3 == 0) request.sampling.logprobs = 2;
    if (i % 5 == 0) request.sampling.prompt_logprobs = 0;
    if (i % 8 == 1) ask_for_embedding(i == 1 ? Pooling::kMean : Pooling::kLast, request);
    requests.push_back(std::move(request));
  }
  return requests;
}

void expect_same(const WholeAnswer& answer, const WholeAnswer& alone, const std::string& what) {
  ASSERT_TRUE(answer.error.ok()) << what << ": " << answer.error.message();
  EXPECT_EQ(answer.token_ids, alone.token_ids) << what;
  EXPECT_EQ(answer.logits_hash, alone.logits_hash) << what;
  EXPECT_EQ(answer.embedding, alone.embedding) << what;
  ASSERT_EQ(answer.prompt_logprobs.size(), alone.prompt_logprobs.size()) << what;
  for (std::size_t i = 1; i < answer.prompt_logprobs.size(); ++i) {
    EXPECT_EQ(answer.prompt_logprobs[i]->chosen.logprob, alone.prompt_logprobs[i]->chosen.logprob)
        << what << " at " << i;
  }
}

// Checks that all other ways give the bits of each request alone, with one thread and no chunks.
void check_chunk_invariance(const std::string& path, EngineOptions options, int longest) {
  std::cout << "seed " << kSeed << "\n";
  options.max_num_seqs = 16;
  options.max_model_len = longest + 8;
  options.num_threads = 1;
  std::vector<GenerationRequest> requests;
  std::vector<WholeAnswer> alone;
  {
    const std::unique_ptr<Engine> engine = open_engine(path, options);
    ASSERT_NE(engine, nullptr);
    requests = mixed_requests(engine->limits().vocab_size, longest);
    for (const GenerationRequest& request : requests) alone.push_back(run_to_end(*engine, request));
  }
  struct Way {
    int num_threads, max_num_batched_tokens, block_size;
    KvCacheLayout layout;
  };
  for (const Way& way :
       {Way{1, 2048, 16, KvCacheLayout::kPaged}, Way{2, 2048, 1, KvCacheLayout::kPaged},
        Way{2, 64, 32, KvCacheLayout::kPaged}, Way{2, 23, 16, KvCacheLayout::kContiguous},
        Way{1, 16, 400, KvCacheLayout::kPaged}}) {
    options.num_threads = way.num_threads;
    options.max_num_batched_tokens = way.max_num_batched_tokens;
    options.block_size = way.block_size;
    options.kv_cache_layout = way.layout;
    const std::unique_ptr<Engine> engine = open_engine(path, options);
    ASSERT_NE(engine, nullptr);
    const std::vector<WholeAnswer> together = run_to_end(*engine, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_same(together[i], alone[i],
                  fmt::format("request {} among all, {} threads, {} tokens a step, blocks of {}", i,
                              way.num_threads, way.max_num_batched_tokens, way.block_size));
    }
  }
  for (const int chunk : {1, 7, 64}) {  // the first, longest request in chunks of this size
    options.max_num_batched_tokens = chunk;
    options.max_num_seqs = 1;
    options.kv_cache_layout = KvCacheLayout::kPaged;
    const std::unique_ptr<Engine> engine = open_engine(path, options);
    ASSERT_NE(engine, nullptr);
    expect_same(run_to_end(*engine, requests[0]), alone[0], fmt::format("chunks of {}", chunk));
  }
}

// Returns a name such as "mlx_tiny_llama".
std::string name_of(const std::tuple<Backend, std::string>& parameters) {
  std::string name = std::string(backend_name(std::get<0>(parameters))) + "_";
  for (const char c : std::get<1>(parameters)) name += c == '-' ? '_' : c;
  return name;
}

class ChunkInvariance : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {};

TEST_P(ChunkInvariance, BatchesChunksBlocksAndThreadsChangeNoBit) {
  const auto& [backend, model] = GetParam();
  check_chunk_invariance(testing::source_path("tests/golden/data/") + model, {.backend = backend},
                         130);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, ChunkInvariance,
    ::testing::Combine(::testing::ValuesIn(backends_here()),
                       ::testing::Values("tiny-llama", "tiny-mistral", "tiny-qwen3", "tiny-gemma2",
                                         "tiny-gemma4", "tiny-phi3", "tiny-qwen3-moe",
                                         "tiny-glm4-moe", "tiny-gemma4-moe")),
    [](const auto& info) { return name_of(info.param); });

// Models with several cache groups: with quantised layers beside bfloat16 windows, or all
// quantised.
class ChunkInvarianceOfWindows : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {
};

TEST_P(ChunkInvarianceOfWindows, BatchesChunksBlocksAndThreadsChangeNoBit) {
  const auto& [backend, format] = GetParam();
  const testing::TemporaryFolder folder;
  testing::make_windowed_checkpoint(folder);
  EngineOptions options = {.backend = backend};
  if (format != "auto") options.kv_cache_formats = KvFormats{KvFormat::kInt8, KvFormat::kInt8};
  if (format == "int8_everywhere") options.kv_cache_skipped_layers = {.windowed = false};
  check_chunk_invariance(folder.path(), options, 130);
}

INSTANTIATE_TEST_SUITE_P(Tiny, ChunkInvarianceOfWindows,
                         ::testing::Combine(::testing::ValuesIn(backends_here()),
                                            ::testing::Values("auto", "int8", "int8_everywhere")),
                         [](const auto& info) { return name_of(info.param); });

class ChunkInvarianceOfCodes : public ::testing::TestWithParam<std::tuple<Backend, KvFormats>> {};

TEST_P(ChunkInvarianceOfCodes, BatchesChunksBlocksAndThreadsChangeNoBit) {
  const auto& [backend, formats] = GetParam();
  check_chunk_invariance(testing::source_path("tests/golden/data/tiny-qwen3"),
                         {.backend = backend, .kv_cache_formats = formats}, 130);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, ChunkInvarianceOfCodes,
    ::testing::Combine(::testing::ValuesIn(backends_here()),
                       ::testing::Values(KvFormats{KvFormat::kInt8, KvFormat::kInt8},
                                         KvFormats{KvFormat::kInt8, KvFormat::kInt4},
                                         KvFormats{KvFormat::kInt4, KvFormat::kInt4},
                                         KvFormats{KvFormat::kBFloat16, KvFormat::kInt8})),
    [](const auto& info) {
      const KvFormats formats = std::get<1>(info.param);
      return fmt::format("{}_{}_{}", backend_name(std::get<0>(info.param)),
                         kv_format_name(formats.keys), kv_format_name(formats.values));
    });

// Answers do not depend on how much memory the cache has. Tested for every family whose keys can be
// quantised, and for every format of keys.
class PoolSizes : public ::testing::TestWithParam<std::tuple<std::string, KvFormat>> {};

TEST_P(PoolSizes, ChangeNoBit) {
  const auto& [model, format] = GetParam();
  std::optional<WholeAnswer> first;
  for (const int num_kv_blocks : {8, 17, 64, 600}) {
    const std::unique_ptr<Engine> engine =
        open_engine(testing::source_path("tests/golden/data/") + model,
                    {.backend = Backend::kCpu,
                     .max_num_seqs = 1,
                     .num_kv_blocks = num_kv_blocks,
                     .kv_cache_formats = KvFormats{format, format}});
    ASSERT_NE(engine, nullptr);
    GenerationRequest request = {.prompt_token_ids = {11, 21, 45, 83}, .hash_logits = true};
    request.sampling = {.temperature = 0, .max_tokens = 6, .ignore_eos = true};
    const WholeAnswer answer = run_to_end(*engine, request);
    if (!first) first = answer;
    expect_same(answer, *first, fmt::format("a pool of {} blocks", num_kv_blocks));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, PoolSizes,
    ::testing::Combine(::testing::Values("tiny-gemma2", "tiny-gemma3", "tiny-gemma4", "tiny-glm4",
                                         "tiny-granite", "tiny-llama", "tiny-llama31",
                                         "tiny-ministral3", "tiny-mistral", "tiny-olmo2",
                                         "tiny-olmo3", "tiny-phi3", "tiny-qwen2", "tiny-qwen3",
                                         "tiny-smollm3"),
                       ::testing::Values(KvFormat::kBFloat16, KvFormat::kInt8, KvFormat::kInt4)),
    [](const auto& info) {
      return name_of({Backend::kCpu, std::get<0>(info.param)}) +
             fmt::format("_{}", kv_format_name(std::get<1>(info.param)));
    });

class ChunkInvarianceOfFormats
    : public ::testing::TestWithParam<std::tuple<Backend, WeightFormat>> {};

TEST_P(ChunkInvarianceOfFormats, BatchesChunksBlocksAndThreadsChangeNoBit) {
  const auto [backend, format] = GetParam();
  const testing::TemporaryFolder wide;
  testing::make_wide_checkpoint(wide);
  const testing::TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  testing::to_gguf(testing::open_hf_source(wide.path()), 2e4, format).write(path);
  check_chunk_invariance(path, {.backend = backend}, 70);
}

std::string name_of(const std::tuple<Backend, WeightFormat>& parameters) {
  const auto [backend, format] = parameters;
  return fmt::format("{}_{}", backend_name(backend), traits_of(format).name);
}

// On mlx, whose own kernels run only with Metal, two formats that share most with the others are
// enough.
INSTANTIATE_TEST_SUITE_P(Wide, ChunkInvarianceOfFormats,
                         ::testing::Combine(::testing::Values(Backend::kCpu),
                                            ::testing::ValuesIn(kWeightFormats)),
                         [](const auto& info) { return name_of(info.param); });
INSTANTIATE_TEST_SUITE_P(WideOnMlx, ChunkInvarianceOfFormats,
                         ::testing::Combine(::testing::Values(Backend::kMlx),
                                            ::testing::Values(WeightFormat::kQ4_K,
                                                              WeightFormat::kQ6_K)),
                         [](const auto& info) { return name_of(info.param); });

TEST(ChunkInvariance, RealCheckpointOnCpu) {
  check_chunk_invariance(default_model_path(), {.backend = Backend::kCpu}, 150);
}

TEST(ChunkInvariance, RealCheckpointOfCodesOnCpu) {
  check_chunk_invariance(
      default_model_path(),
      {.backend = Backend::kCpu, .kv_cache_formats = KvFormats{KvFormat::kInt8, KvFormat::kInt4}},
      300);
}

}  // namespace
}  // namespace pagoda
