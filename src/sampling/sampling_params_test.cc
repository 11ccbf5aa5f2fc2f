#include "sampling/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "sampling/token_rules.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

constexpr int kVocabSize = 100;

std::string error_of(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  const Status status = validate(params, kVocabSize);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

TEST(SamplingParams, DefaultsAreValid) {
  EXPECT_EQ(error_of([](SamplingParams&) {}), "");
}

TEST(SamplingParams, EndsOfRangesAreValid) {
  EXPECT_EQ(error_of([](SamplingParams& p) {
              p.temperature = 0;
              p.top_k = -1;
              p.top_p = 1e-30f;
              p.min_p = 1;
              p.repetition_penalty = 1e-6f;
              p.presence_penalty = -2;
              p.frequency_penalty = 2;
              p.repeat_last_n = -1;
              p.n = kMaxSamples;
              p.min_tokens = p.max_tokens;
              p.logprobs = kMaxLogprobs;
              p.prompt_logprobs = 0;
              p.stop_token_ids = {0, kVocabSize - 1};
            }),
            "");
}

TEST(SamplingParams, ErrorsNameFieldRangeAndValue) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto expect_error = [](const std::function<void(SamplingParams&)>& change,
                               const char* message) {
    EXPECT_THAT(error_of(change), HasSubstr(message));
  };
  expect_error([](auto& p) { p.temperature = -0.5f; },
               "[sampling] temperature: expected a number of [0, 1000], got -0.5");
  expect_error([](auto& p) { p.temperature = kNan; }, "temperature: expected");
  expect_error([](auto& p) { p.temperature = kInfinity; }, "temperature: expected");
  expect_error([](auto& p) { p.top_p = 0; }, "top_p: expected a number of (0, 1], got 0");
  expect_error([](auto& p) { p.top_p = 1.01f; }, "top_p: expected");
  expect_error([](auto& p) { p.top_p = kNan; }, "top_p: expected");
  expect_error([](auto& p) { p.top_k = -2; }, "top_k: expected");
  expect_error([](auto& p) { p.min_p = -0.1f; }, "min_p: expected a number of [0, 1], got -0.1");
  expect_error([](auto& p) { p.min_p = kNan; }, "min_p: expected");
  expect_error([](auto& p) { p.repetition_penalty = 0; }, "repetition_penalty: expected");
  expect_error([](auto& p) { p.repetition_penalty = kInfinity; }, "repetition_penalty: expected");
  expect_error([](auto& p) { p.presence_penalty = 2.5f; },
               "presence_penalty: expected a number of [-2, 2], got 2.5");
  expect_error([](auto& p) { p.frequency_penalty = kNan; }, "frequency_penalty: expected");
  expect_error([](auto& p) { p.n = 0; }, "n: expected an integer of [1, 128], got 0");
  expect_error([](auto& p) { p.n = kMaxSamples + 1; }, "n: expected");
  expect_error([](auto& p) { p.max_tokens = 0; },
               "max_tokens: expected an integer from 1 (0 with prompt_logprobs), got 0");
  expect_error([](auto& p) { p.max_tokens = -1, p.prompt_logprobs = 0; }, "max_tokens: expected");
  expect_error([](auto& p) { p.min_tokens = 17; },
               "min_tokens: expected an integer of [0, 16], got 17");
  expect_error(
      [](auto& p) {
        p.stop_token_ids = {5, kVocabSize};
      },
      "stop_token_ids: expected an integer of [0, 99], got 100");
  expect_error([](auto& p) { p.stop_token_ids = {-1}; }, "stop_token_ids: expected");
  expect_error([](auto& p) { p.logprobs = 21; },
               "logprobs: expected an integer of [0, 20], got 21");
  expect_error([](auto& p) { p.prompt_logprobs = -1; }, "prompt_logprobs: expected");
}

TEST(SamplingParams, ErrorsOfLlamaCppsFieldsNameFieldRangeAndValue) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto expect_error = [](const std::function<void(SamplingParams&)>& change,
                               const char* message) {
    EXPECT_THAT(error_of(change), HasSubstr(message));
  };
  expect_error([](auto& p) { p.dynatemp_range = -1; },
               "[sampling] dynatemp_range: expected a number of [0, 100], got -1");
  expect_error([](auto& p) { p.dynatemp_exponent = kNan; }, "dynatemp_exponent: expected");
  expect_error([](auto& p) { p.typical_p = 0; }, "typical_p: expected a number of (0, 1], got 0");
  expect_error([](auto& p) { p.typical_p = kNan; }, "typical_p: expected");
  expect_error([](auto& p) { p.xtc_probability = 1.5f; },
               "xtc_probability: expected a number of [0, 1], got 1.5");
  expect_error([](auto& p) { p.xtc_threshold = -0.5f; }, "xtc_threshold: expected");
  expect_error([](auto& p) { p.mirostat = 3; }, "mirostat: expected 0 or 1 or 2, got 3");
  expect_error([](auto& p) { p.mirostat_tau = -1; }, "mirostat_tau: expected");
  expect_error([](auto& p) { p.mirostat_eta = kNan; }, "mirostat_eta: expected");
  expect_error([](auto& p) { p.dry_multiplier = -1; }, "dry_multiplier: expected");
  expect_error([](auto& p) { p.dry_base = 0.5f; },
               "dry_base: expected a number of [1, 1000], got 0.5");
  expect_error([](auto& p) { p.dry_allowed_length = 0; }, "dry_allowed_length: expected");
  expect_error([](auto& p) { p.dry_penalty_last_n = -2; }, "dry_penalty_last_n: expected");
  expect_error([](auto& p) { p.repeat_last_n = -2; },
               "repeat_last_n: expected an integer of [-1, inf), got -2");
  expect_error(
      [](auto& p) {
        p.token_rules = std::make_shared<const TokenRules>(
            TokenRules{.logit_bias = {{.token_id = kVocabSize, .bias = 1}}});
      },
      "logit_bias: expected an integer of [0, 99], got 100");
}

TEST(SamplingParams, AScoredPromptNeedsNoOutput) {
  EXPECT_EQ(error_of([](SamplingParams& p) {
              p.max_tokens = 0;
              p.prompt_logprobs = 0;
            }),
            "");
}

}  // namespace
}  // namespace pagoda
