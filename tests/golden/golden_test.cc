// Compares whole models with golden outputs that float32 transformers computed, on every backend
// that is built.
//
// The tiny checkpoints have random weights and come with the project; the real one is
// SmolLM2-135M-Instruct in Q4_1, which `make test` fetches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "tests/golden/golden_case.h"
#include "tests/support/default_model.h"
#include "tests/support/expert_choices.h"
#include "tests/support/open_engine.h"

namespace pagoda::golden {
namespace {

// How close a backend must come, in natural logarithms.
struct Bounds {
  float margin = 0;
  double tiny_mean = 0, tiny_largest = 0;
  double real_mean = 0, real_largest = 0;
};

Bounds bounds_of(Backend backend) {
  switch (backend) {
    case Backend::kReference:
      return {0.01f, 0.001, 0.005, 0.001, 0.005};
    case Backend::kCpu:
    case Backend::kMlx:
      return {0.2f, 0.04, 0.5, 0.025, 0.35};
    case Backend::kCuda:
      return {0.3f, 0.08, 1.0, 0.06, 0.7};
  }
  return {};
}

std::unique_ptr<Engine> open_golden(const std::string& path, Backend backend,
                                    const std::optional<KvFormats>& formats = {},
                                    int max_model_len = 512) {
  return open_engine(path, {.backend = backend,
                            .max_model_len = max_model_len,
                            .max_num_seqs = 4,
                            .kv_cache_formats = formats});
}

// Checks all `cases` on one engine, and prints how close it comes.
void check_cases(Engine& engine, const std::string& name, const std::vector<GoldenCase>& cases,
                 const Bounds& bounds, bool real) {
  Closeness closeness;
  for (const GoldenCase& golden : cases)
    EXPECT_EQ(compare(engine, golden, bounds.margin, closeness), "");
  std::cout << fmt::format(
      "{}: log-probabilities differ by {:.5f} in the mean, {:.4f} at most, over {}\n", name,
      closeness.mean(), closeness.largest, closeness.count);
  EXPECT_GT(closeness.count, 0);
  EXPECT_LE(closeness.mean(), real ? bounds.real_mean : bounds.tiny_mean);
  EXPECT_LE(closeness.largest, real ? bounds.real_largest : bounds.tiny_largest);
}

// A checkpoint in tests/golden/data and its own golden outputs.
struct TinyCheckpoint {
  std::string name;  // of the folder, which also has a GGUF twin's file
  std::string golden = "golden.json";
  int max_model_len = 512;
  std::optional<KvFormats> formats = {};  // of MixtureGolden, but on reference; absent: the default

  bool is_gguf() const { return name.ends_with("-gguf"); }
  std::string path() const { return kData + name + (is_gguf() ? "/model.gguf" : ""); }
  std::string golden_path() const { return kData + name + "/" + golden; }
};

const std::vector<TinyCheckpoint>& tiny_checkpoints() {
  static const std::vector<TinyCheckpoint> checkpoints = [] {
    std::vector<TinyCheckpoint> all;
    for (const char* name :
         {"tiny-llama",           "tiny-llama31",     "tiny-qwen2",        "tiny-qwen3",
          "tiny-mistral",         "tiny-gemma2",      "tiny-gemma2-gguf",  "tiny-gemma3",
          "tiny-gemma3-1",        "tiny-gemma3-gguf", "tiny-gemma3-vl",    "tiny-gemma4",
          "tiny-gemma4-gguf",     "tiny-gemma4-vl",   "tiny-glm4",         "tiny-glm4-1",
          "tiny-glm4-gguf",       "tiny-granite",     "tiny-granite-gguf", "tiny-ministral3",
          "tiny-ministral3-gguf", "tiny-mistral3",    "tiny-olmo2",        "tiny-olmo2-1",
          "tiny-olmo2-gguf",      "tiny-olmo3",       "tiny-olmo3-gguf",   "tiny-phi3",
          "tiny-phi3-1",          "tiny-phi3-gguf",   "tiny-qwen3-vl",     "tiny-smollm3",
          "tiny-smollm3-gguf"}) {
      all.push_back({.name = name});
    }
    // Within the original context LongRoPE rotates by its short factors.
    for (const char* name : {"tiny-phi3", "tiny-phi3-gguf"})
      all.push_back({.name = name, .golden = "golden_short.json", .max_model_len = 64});
    return all;
  }();
  return checkpoints;
}

// Checkpoints of mixtures of experts.
const std::vector<TinyCheckpoint>& mixtures() {
  static const std::vector<TinyCheckpoint> checkpoints = [] {
    std::vector<TinyCheckpoint> all;
    for (const char* name :
         {"tiny-mixtral", "tiny-qwen2-moe", "tiny-qwen3-moe", "tiny-olmoe", "tiny-granitemoe",
          "tiny-granitemoeshared", "tiny-glm4-moe", "tiny-ernie4-5-moe", "tiny-gpt-oss-mxfp4",
          "tiny-laguna", "tiny-qwen3-vl-moe"}) {
      all.push_back({.name = name});
    }
    // Their scores are large: in bfloat16 the cache moves one log-probability of gpt-oss's 789 by
    // 0.30 on reference, and by 0.64 on cpu, which rounds queries, too.
    for (const char* name : {"tiny-gpt-oss", "tiny-gemma4-moe"}) {
      all.push_back({.name = name, .formats = KvFormats{KvFormat::kFloat16, KvFormat::kFloat16}});
    }
    return all;
  }();
  return checkpoints;
}

// Returns the same in GGUF. Kernels compute the same from both.
std::vector<TinyCheckpoint> mixtures_in_gguf() {
  std::vector<TinyCheckpoint> all = mixtures();
  for (TinyCheckpoint& checkpoint : all) checkpoint.name += "-gguf";
  return all;
}

using TinyParams = std::tuple<Backend, TinyCheckpoint>;
class TinyGolden : public ::testing::TestWithParam<TinyParams> {};

TEST_P(TinyGolden, TokensAndLogprobsAreTransformers) {
  const auto& [backend, checkpoint] = GetParam();
  const std::unique_ptr<Engine> engine =
      open_golden(checkpoint.path(), backend, {}, checkpoint.max_model_len);
  ASSERT_NE(engine, nullptr);
  const Result<std::vector<GoldenCase>> cases = read_golden_cases(checkpoint.golden_path());
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  check_cases(*engine, fmt::format("{} on {}", checkpoint.name, backend_name(backend)), *cases,
              bounds_of(backend), /*real=*/false);
}

std::string test_name(const TinyCheckpoint& checkpoint) {
  std::string clean = checkpoint.name;
  std::replace(clean.begin(), clean.end(), '-', '_');
  return checkpoint.max_model_len == 64 ? clean + "_short" : clean;
}

std::string params_name(const ::testing::TestParamInfo<TinyParams>& info) {
  return fmt::format("{}_{}", backend_name(std::get<0>(info.param)),
                     test_name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, TinyGolden,
                         ::testing::Combine(::testing::ValuesIn(backends_here()),
                                            ::testing::ValuesIn(tiny_checkpoints())),
                         params_name);
INSTANTIATE_TEST_SUITE_P(MixturesInGguf, TinyGolden,
                         ::testing::Combine(::testing::Values(Backend::kReference),
                                            ::testing::ValuesIn(mixtures_in_gguf())),
                         params_name);
INSTANTIATE_TEST_SUITE_P(Mixtures, TinyGolden,
                         ::testing::Combine(::testing::Values(Backend::kReference),
                                            ::testing::ValuesIn(mixtures())),
                         params_name);

class MixtureGolden : public ::testing::TestWithParam<TinyParams> {
 protected:
  static std::unique_ptr<Engine> open(Backend backend) {
    const TinyCheckpoint& checkpoint = std::get<1>(GetParam());
    const std::optional<KvFormats> formats =
        backend == Backend::kReference ? std::nullopt : checkpoint.formats;
    return open_golden(checkpoint.path(), backend, formats, checkpoint.max_model_len);
  }
  static std::vector<GoldenCase> cases() {
    return read_golden_cases(std::get<1>(GetParam()).golden_path()).value();
  }
};

// Records the reference's choices of experts, and replays them.
TEST_P(MixtureGolden, TokensAndLogprobsAreTransformersWithTheSameExperts) {
  const auto& [backend, checkpoint] = GetParam();
  testing::ExpertChoices choices;
  {
    const std::unique_ptr<Engine> engine = open(Backend::kReference);
    const ReplacedRoute recording(testing::recording_body(choices));
    Closeness ignored;
    for (const GoldenCase& golden : cases()) compare(*engine, golden, 0, ignored);
  }
  // An engine that is made calls ops, too, to have their kernels built.
  const std::unique_ptr<Engine> engine = open(backend);
  ASSERT_NE(engine, nullptr);
  std::string error;
  const ReplacedRoute replaying(testing::replaying_body(choices, error));
  check_cases(*engine, fmt::format("{} on {}", checkpoint.name, backend_name(backend)), cases(),
              bounds_of(backend), /*real=*/false);
  EXPECT_EQ(error, "");
}

TEST_P(MixtureGolden, ExpertsAreTheReferences) {
  const auto& [backend, checkpoint] = GetParam();
  const auto choices_on = [&](Backend each) {
    testing::ExpertChoices choices;
    const std::unique_ptr<Engine> engine = open(each);
    const ReplacedRoute recording(testing::recording_body(choices));
    Closeness ignored;
    for (const GoldenCase& golden : cases()) compare_fed(*engine, golden, 100, ignored);
    return choices;
  };
  const testing::ExpertChoices expected = choices_on(Backend::kReference),
                               actual = choices_on(backend);
  ASSERT_EQ(actual.size(), expected.size());
  const double share = testing::share_of_equal(expected, actual);
  std::cout << fmt::format("{} on {}: {:.2f} % of the choices are the reference's\n",
                           checkpoint.name, backend_name(backend), 100 * share);
  EXPECT_GE(share, 0.97);
}

std::vector<Backend> backends_but_the_reference() {
  std::vector<Backend> backends = backends_here();
  std::erase(backends, Backend::kReference);
  return backends;
}

INSTANTIATE_TEST_SUITE_P(All, MixtureGolden,
                         ::testing::Combine(::testing::ValuesIn(backends_but_the_reference()),
                                            ::testing::ValuesIn(mixtures())),
                         params_name);

// Returns the cases of the real checkpoint. The reference takes minutes per case, and MLX's
// quantised products on a Linux CPU take about a second per token. So `cpu` runs all cases, other
// backends the two shortest ones, cut to a few steps, unless PAGODA_GOLDEN_ALL is set.
std::vector<GoldenCase> real_cases(Backend backend) {
  std::vector<GoldenCase> cases = read_golden_cases(kData + "smollm2.json").value();
  if (backend != Backend::kCpu && std::getenv("PAGODA_GOLDEN_ALL") == nullptr) {
    constexpr std::size_t kShortCases = 2;
    constexpr std::size_t kShortSteps = 12;
    cases.resize(kShortCases);
    for (GoldenCase& golden : cases) golden.greedy_ids.resize(kShortSteps);
  }
  return cases;
}

class RealGolden : public ::testing::TestWithParam<Backend> {};

TEST_P(RealGolden, TokensAndLogprobsAreTransformers) {
  const Backend backend = GetParam();
  const std::unique_ptr<Engine> engine = open_golden(default_model_path(), backend);
  ASSERT_NE(engine, nullptr);
  check_cases(*engine, fmt::format("SmolLM2 on {}", backend_name(backend)), real_cases(backend),
              bounds_of(backend), /*real=*/true);
}

INSTANTIATE_TEST_SUITE_P(All, RealGolden, ::testing::ValuesIn(backends_here()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

// Bounds for a quantised cache, where the errors of its codes dominate.
struct CodesBounds {
  KvFormats formats;
  float margin = 0;
  double mean = 0, largest = 0;
};
class RealGoldenOfCodes : public ::testing::TestWithParam<std::tuple<Backend, CodesBounds>> {};

TEST_P(RealGoldenOfCodes, TokensAndLogprobsAreNearTransformers) {
  const auto& [backend, bounds] = GetParam();
  const std::unique_ptr<Engine> engine = open_golden(default_model_path(), backend, bounds.formats);
  ASSERT_NE(engine, nullptr);
  check_cases(
      *engine,
      fmt::format("SmolLM2 on {} with {} and {}", backend_name(backend),
                  kv_format_name(bounds.formats.keys), kv_format_name(bounds.formats.values)),
      real_cases(backend),
      {.margin = bounds.margin, .real_mean = bounds.mean, .real_largest = bounds.largest},
      /*real=*/true);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealGoldenOfCodes,
    ::testing::Combine(
        ::testing::ValuesIn(backends_here()),
        ::testing::Values(CodesBounds{{KvFormat::kInt8, KvFormat::kInt8}, 0.5f, 0.03, 0.5},
                          CodesBounds{{KvFormat::kInt8, KvFormat::kInt4}, 1.0f, 0.17, 4.0})),
    [](const auto& info) {
      const KvFormats formats = std::get<1>(info.param).formats;
      return fmt::format("{}_{}_{}", backend_name(std::get<0>(info.param)),
                         kv_format_name(formats.keys), kv_format_name(formats.values));
    });

}  // namespace
}  // namespace pagoda::golden
