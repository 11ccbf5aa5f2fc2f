// The prefix cache on disk, as an engine's users see it: the same bits after a restart and when
// memory is short, no hits from another scope, and no effect when it is off.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "backend/cpu/cpu_isa.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/windowed_checkpoint.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 20261125;

GenerationRequest greedy(int first, int num_prompt_tokens) {
  GenerationRequest request;
  for (int i = 0; i < num_prompt_tokens; ++i)
    request.prompt_token_ids.push_back(4 + (first + i * 7) % 500);
  request.sampling = {.temperature = 0, .max_tokens = 6, .ignore_eos = true, .logprobs = 2};
  request.hash_logits = true;
  return request;
}

void expect_same(const WholeAnswer& a, const WholeAnswer& b) {
  EXPECT_EQ(a.finish_reason, FinishReason::kLength) << a.error.message();
  EXPECT_EQ(a.token_ids, b.token_ids);
  EXPECT_EQ(a.logits_hash, b.logits_hash);
}

class PrefixCacheDir : public ::testing::Test {
 protected:
  EngineOptions options(Backend backend = Backend::kCpu) {
    return {.backend = backend,
            .num_threads = 2,
            .max_model_len = 256,
            .max_num_seqs = 8,
            .num_kv_blocks = 64,
            .prefix_cache_dir = folder_ / "cache"};
  }

  // Runs a prompt in a new engine; returns how many blocks the engine read from disk.
  std::uint64_t blocks_read(const EngineOptions& options, const std::string& path = kTinyLlama) {
    const auto engine = open_engine(path, options);
    if (engine == nullptr) return 0;
    run_to_end(*engine, greedy(0, 100));
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_EQ(stats.tier.num_failed, 0u);
    return stats.tier.num_read;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(PrefixCacheDir, ARestartReadsWhatItWouldComputeToTheSameBits) {
  for (const Backend backend : backends_here()) {
    SCOPED_TRACE(backend_name(backend));
    auto engine = open_engine(kTinyLlama, options(backend));
    ASSERT_NE(engine, nullptr);
    const WholeAnswer computed = run_to_end(*engine, greedy(0, 100));
    EXPECT_EQ(stats_at_rest(*engine).tier.num_read, 0u);
    engine.reset();
    engine = open_engine(kTinyLlama, options(backend));
    ASSERT_NE(engine, nullptr);
    expect_same(run_to_end(*engine, greedy(0, 100)), computed);
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_EQ(stats.tier.num_read, 6u);
    EXPECT_EQ(stats.num_prefix_hits, 96u);
    EXPECT_EQ(stats.num_prompt_tokens, 4u);
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  }
}

// The prompts are shorter or longer than the fixed prompt that gives the folder's scope.
TEST_F(PrefixCacheDir, TheFirstPromptIsAnsweredAsWithoutIt) {
  for (const Backend backend : backends_here()) {
    for (const int num_prompt_tokens : {1, 16, 30, 63, 100}) {
      SCOPED_TRACE(fmt::format("{}, {}", backend_name(backend), num_prompt_tokens));
      EngineOptions without = options(backend);
      without.prefix_cache_dir.clear();
      const auto engine = open_engine(kTinyLlama, options(backend));
      const auto plain = open_engine(kTinyLlama, without);
      expect_same(run_to_end(*engine, greedy(3, num_prompt_tokens)),
                  run_to_end(*plain, greedy(3, num_prompt_tokens)));
    }
  }
}

// Each group has a file for each block that a query at the hit's end reads.
TEST_F(PrefixCacheDir, ARestartReadsWhatWindowsSee) {
  const testing::TemporaryFolder model;
  testing::make_windowed_checkpoint(model);
  for (const Backend backend : backends_here()) {
    SCOPED_TRACE(backend_name(backend));
    auto engine = open_engine(model.path(), options(backend));
    ASSERT_NE(engine, nullptr);
    const WholeAnswer computed = run_to_end(*engine, greedy(0, 100));
    engine.reset();
    engine = open_engine(model.path(), options(backend));
    ASSERT_NE(engine, nullptr);
    expect_same(run_to_end(*engine, greedy(0, 100)), computed);
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_EQ(stats.tier.num_read, 6u + 3 * 2);  // the window of position 96 begins at 73
    EXPECT_EQ(stats.num_prefix_hits, 96u);
    EXPECT_EQ(stats.num_prompt_tokens, 4u);
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  }
}

// Prompts with common prefixes, in a cache that holds only a few. Most of the prefixes that are
// asked for again have been evicted, to the disk.
TEST_F(PrefixCacheDir, WhereMemoryIsShortAnswersStayTheSame) {
  for (const Backend backend : backends_here()) {
    SCOPED_TRACE(backend_name(backend));
    std::mt19937_64 random(kSeed);
    std::vector<GenerationRequest> requests;
    for (int i = 0; i < 60; ++i) {
      requests.push_back(greedy(static_cast<int>(random() % 6) * 50, 20 + random() % 100));
      requests.back().sampling.n = 1 + static_cast<int>(random() % 2);
    }
    EngineOptions plain = options(backend);
    plain.prefix_cache_dir.clear();
    const auto without = open_engine(kTinyLlama, plain);
    EngineOptions small = options(backend);
    small.num_kv_blocks = 20;
    const auto with = open_engine(kTinyLlama, small);
    ASSERT_NE(without, nullptr);
    ASSERT_NE(with, nullptr);
    const auto expected = run_to_end(*without, requests);
    for (int round = 0; round < 2; ++round) {
      const auto answers = run_to_end(*with, requests);
      ASSERT_EQ(answers.size(), expected.size());
      for (std::size_t i = 0; i < answers.size(); ++i) expect_same(answers[i], expected[i]);
    }
    const EngineStats stats = stats_at_rest(*with);
    EXPECT_GT(stats.tier.num_read, 20u);
    EXPECT_EQ(stats.tier.num_failed, 0u);
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  }
}

// Each of these options may change the bits of a block, or what they mean.
TEST_F(PrefixCacheDir, AnotherScopeFindsNothing) {
  EXPECT_EQ(blocks_read(options()), 0u);
  EXPECT_EQ(blocks_read(options()), 6u);
  EngineOptions other = options();
  other.block_size = 8;
  EXPECT_EQ(blocks_read(other), 0u);
  other = options();
  other.kv_cache_formats = KvFormats{KvFormat::kInt8, KvFormat::kInt8};
  EXPECT_EQ(blocks_read(other), 0u);
  EXPECT_EQ(blocks_read(options(Backend::kReference)), 0u);
  other = options();
  other.num_threads = 1;  // gives the same bits
  other.max_num_batched_tokens = 32;
  EXPECT_EQ(blocks_read(other), 6u);
  if (includes_avx512(choose_cpu_isa().value())) {
    other.int8_activations = true;
    EXPECT_EQ(blocks_read(other), 0u);
  }
}

TEST_F(PrefixCacheDir, AnotherInstructionSetFindsNothing) {
  EXPECT_EQ(blocks_read(options()), 0u);
  const char* const before = std::getenv("PAGODA_CPU_ISA");
  const std::string isa = before == nullptr ? "" : before;
  ::setenv("PAGODA_CPU_ISA", "portable", 1);
  EXPECT_EQ(blocks_read(options()), isa == "portable" ? 6u : 0u);
  if (before == nullptr) {
    ::unsetenv("PAGODA_CPU_ISA");
  } else {
    ::setenv("PAGODA_CPU_ISA", isa.c_str(), 1);
  }
  EXPECT_EQ(blocks_read(options()), 6u);
}

// Changes one bit of the last weight, on which the fixed prompt's entries do not depend.
TEST_F(PrefixCacheDir, AnotherCheckpointOfThatShapeFindsNothing) {
  EXPECT_EQ(blocks_read(options()), 0u);
  const std::string other = folder_ / "tiny-llama";
  fs::copy(kTinyLlama, other, fs::copy_options::recursive);
  EXPECT_EQ(blocks_read(options(), other), 6u);  // a copy has the same scope
  for (const auto& entry : fs::directory_iterator(other)) {
    if (entry.path().extension() != ".safetensors") continue;
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(-4, std::ios::end);
    const int was = file.get();
    file.seekp(-4, std::ios::end);
    file.put(static_cast<char>(was ^ 1));
  }
  EXPECT_EQ(blocks_read(options(), other), 0u);
}

TEST_F(PrefixCacheDir, TwoEnginesShareAFolder) {
  EXPECT_EQ(blocks_read(options()), 0u);
  const auto first = open_engine(kTinyLlama, options());
  const auto second = open_engine(kTinyLlama, options());
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const WholeAnswer answer = run_to_end(*first, greedy(0, 100));
  expect_same(run_to_end(*second, greedy(0, 100)), answer);
  EXPECT_EQ(stats_at_rest(*first).tier.num_read, 6u);
  EXPECT_EQ(stats_at_rest(*second).tier.num_read, 6u);
}

TEST_F(PrefixCacheDir, WithoutItNothingIsCopiedAndNoThreadRuns) {
  const auto num_threads = [] {
    std::error_code error;
    return std::distance(fs::directory_iterator("/proc/self/task", error),
                         fs::directory_iterator());
  };
  EngineOptions off = options();
  off.prefix_cache_dir.clear();
  off.num_kv_blocks = 17;
  off.enable_prefix_caching = false;
  const auto none = open_engine(kTinyLlama, off);
  const auto threads_of_one = num_threads();
  off.enable_prefix_caching = true;
  const auto engine = open_engine(kTinyLlama, off);
  ASSERT_NE(none, nullptr);
  ASSERT_NE(engine, nullptr);
  const auto threads_before_either = num_threads() - threads_of_one;
  for (int i = 0; i < 4; ++i) run_to_end(*engine, greedy(40 * i, 100));
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_GT(stats.num_prefix_evictions, 0u);
  EXPECT_EQ(stats.tier.num_written + stats.tier.num_dropped + stats.tier.num_read, 0u);
  EXPECT_EQ(num_threads(), threads_of_one + threads_before_either);
  const auto with = open_engine(kTinyLlama, options());
  const auto threads_with = num_threads() - threads_of_one - threads_before_either;
  if (fs::exists("/proc/self/task")) {
    EXPECT_EQ(threads_with, threads_before_either + 1);
  }
}

TEST_F(PrefixCacheDir, WhatRulesItOutIsRefused) {
  const auto refusal = [&](const EngineOptions& options) {
    const Checkpoint checkpoint = Checkpoint::open(kTinyLlama).value();
    const ModelConfig config = read_model_config(checkpoint).value();
    return create_engine(checkpoint, config, options).status();
  };
  EngineOptions other = options();
  other.enable_prefix_caching = false;
  EXPECT_EQ(refusal(other).message(),
            "[kv cache] prefix-cache-dir: expected prefix caching on, got "
            "--no-enable-prefix-caching");
  other = options();
  other.num_kv_blocks = 0;
  other.kv_cache_layout = KvCacheLayout::kContiguous;
  EXPECT_EQ(
      refusal(other).message(),
      "[kv cache] prefix-cache-dir: expected --kv-cache-layout auto or paged, got contiguous");
  other = options();
  other.prefix_cache_dir = "/dev/null/cache";
  EXPECT_EQ(refusal(other).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagoda
