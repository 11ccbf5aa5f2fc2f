// The tiny checkpoints, rewritten as GGUF files of every format that is read. Unquantised files
// must give the golden outputs. On quantised ones the backends must agree with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "quant/q4_k.h"
#include "tests/golden/golden_case.h"
#include "tests/support/hf_to_gguf.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wide_checkpoint.h"
#include "weights/checkpoint.h"

namespace pagoda::golden {
namespace {

using testing::GgufWriter;
using testing::HfSource;
using testing::open_hf_source;
using testing::TemporaryFolder;

const std::map<std::string, double> kRopeThetas = {{"tiny-llama", 1e4},
                                                   {"tiny-llama31", 5e5},
                                                   {"tiny-qwen2", 1e4},
                                                   {"tiny-qwen3", 1e4},
                                                   {"tiny-mistral", 1e4}};

std::unique_ptr<Engine> open_file(const std::string& path, Backend backend) {
  return open_engine(path, {.backend = backend, .max_model_len = 512, .max_num_seqs = 4});
}

TEST(GgufCheckpoint, UnquantisedFilesGiveTheGoldenOutputs) {
  const TemporaryFolder folder;
  for (const auto& [model, rope_theta] : kRopeThetas) {
    const std::string path = folder / (model + ".gguf");
    to_gguf(open_hf_source(kData + model), rope_theta, WeightFormat::kF32).write(path);
    const std::unique_ptr<Engine> engine = open_file(path, Backend::kReference);
    ASSERT_NE(engine, nullptr) << model;
    Closeness closeness;
    const std::vector<GoldenCase> cases = *read_golden_cases(kData + model + "/golden.json");
    for (const GoldenCase& golden : cases) {
      EXPECT_EQ(compare(*engine, golden, 0.01f, closeness), "") << model;
    }
    EXPECT_LE(closeness.mean(), 0.001) << model;
    EXPECT_LE(closeness.largest, 0.005) << model;
  }
}

TEST(GgufCheckpoint, SplitSetsAreTheirWhole) {
  const TemporaryFolder folder;
  const GgufWriter writer = to_gguf(open_hf_source(kData + "tiny-llama"), 1e4, WeightFormat::kQ8_0);
  writer.write(folder / "whole.gguf");
  const GenerationRequest request = {
      .prompt_token_ids = {5, 6, 7, 8},
      .sampling = {.temperature = 0, .max_tokens = 8, .ignore_eos = true},
      .hash_logits = true};
  const WholeAnswer whole = run_to_end(*open_file(folder / "whole.gguf", Backend::kCpu), request);
  const WholeAnswer parts =
      run_to_end(*open_file(writer.write_split(folder / "part", 3), Backend::kCpu), request);
  EXPECT_EQ(whole.logits_hash, parts.logits_hash);
  EXPECT_EQ(whole.token_ids, parts.token_ids);
}

// Computes a golden case with the reference backend.
GoldenCase reference_case(Engine& reference, const std::vector<int>& prompt_ids) {
  constexpr int kSteps = 12;
  const WholeAnswer answer = run_to_end(reference, {.prompt_token_ids = prompt_ids,
                                                    .sampling = {.temperature = 0,
                                                                 .max_tokens = kSteps,
                                                                 .ignore_eos = true,
                                                                 .logprobs = 5,
                                                                 .prompt_logprobs = 0}});
  GoldenCase golden = {
      .name = "reference", .prompt_ids = prompt_ids, .greedy_ids = answer.token_ids};
  for (const TokenLogprobs& step : answer.logprobs) {
    golden.top1_margin.push_back(step.top[0].logprob - step.top[1].logprob);
    std::vector<std::pair<int, float>>& listed = golden.top_logprobs.emplace_back();
    for (const TokenLogprob& entry : step.top) listed.emplace_back(entry.token_id, entry.logprob);
  }
  for (const auto& entry : answer.prompt_logprobs) {
    golden.prompt_logprobs.push_back(entry ? std::optional(entry->chosen.logprob) : std::nullopt);
  }
  return golden;
}

// Expects that all backends, with the source in that format, answer as the reference does.
void expect_backends_agree(const HfSource& source, double rope_theta, WeightFormat format,
                           const std::vector<int>& prompt_ids,
                           std::optional<WeightFormat> of_values = std::nullopt) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  to_gguf(source, rope_theta, format, of_values).write(path);
  const std::unique_ptr<Engine> reference = open_file(path, Backend::kReference);
  const GoldenCase golden = reference_case(*reference, prompt_ids);
  for (const Backend backend : backends_here()) {
    const std::unique_ptr<Engine> engine = open_file(path, backend);
    ASSERT_NE(engine, nullptr);
    Closeness closeness;
    const std::string what = fmt::format("{} in {} on {}", source.config.architecture,
                                         traits_of(format).name, backend_name(backend));
    EXPECT_EQ(compare(*engine, golden, 0.2f, closeness), "") << what;
    EXPECT_LE(closeness.mean(), 0.04) << what;
    EXPECT_LE(closeness.largest, 0.5) << what;
  }
}

TEST(GgufCheckpoint, EveryBackendReadsFormatsThatAreMixedAsInQ4KM) {
  const TemporaryFolder wide;
  testing::make_wide_checkpoint(wide);
  const std::vector<GoldenCase> cases = *read_golden_cases(kData + "tiny-llama/golden.json");
  expect_backends_agree(open_hf_source(wide.path()), 2e4, WeightFormat::kQ4_K, cases[3].prompt_ids,
                        WeightFormat::kQ6_K);
}

TEST(GgufCheckpoint, EveryFormatIsReadAlikeByAllBackends) {
  const TemporaryFolder wide;
  testing::make_wide_checkpoint(wide);
  for (const WeightFormat format : kWeightFormats) {
    const std::vector<GoldenCase> cases = *read_golden_cases(kData + "tiny-llama/golden.json");
    if (traits_of(format).block_size == BlockQ4_K::kValues) {
      expect_backends_agree(open_hf_source(wide.path()), 2e4, format, cases[3].prompt_ids);
      continue;
    }
    for (const std::string model : {"tiny-llama", "tiny-qwen2", "tiny-qwen3"}) {
      expect_backends_agree(open_hf_source(kData + model), 1e4, format, cases[3].prompt_ids);
    }
  }
}

}  // namespace
}  // namespace pagoda::golden
