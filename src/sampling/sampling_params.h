// SamplingParams: what a request asks of its sampling. Names, meanings and ranges are vLLM's; those
// of dynamic temperature, typical-p, XTC, DRY and mirostat are llama.cpp's. sampling_fields.h lists
// them for all code that reads, checks or describes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct TokenRules;  // sampling/token_rules.h

struct SamplingParams {
  float temperature = 1.0f;        // 0: greedy
  float dynatemp_range = 0.0f;     // 0: off; sampling/host/dynamic_temperature.h
  float dynatemp_exponent = 1.0f;  // applied to the entropy's share
  int top_k = 0;                   // 0 (or -1 in requests): off
  float top_p = 1.0f;              // 1: off; the token that crosses p is kept
  float min_p = 0.0f;              // 0: off; a share of the most likely token's probability
  float typical_p = 1.0f;          // 1: off; sampling/host/typical.h
  float xtc_probability = 0.0f;    // 0: off; sampling/host/xtc.h
  float xtc_threshold = 0.1f;      // above 0.5 it never excludes anything
  int mirostat = 0;           // its version, instead of all other filters; sampling/host/mirostat.h
  float mirostat_tau = 5.0f;  // bits
  float mirostat_eta = 0.1f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::optional<int> repeat_last_n;  // sampling/penalty_window.h; -1: all tokens; 0: no penalties
  float dry_multiplier = 0.0f;       // 0: off; sampling/dry.h
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_penalty_last_n = -1;        // tokens that it looks back over; -1: all; 0: off
  std::optional<std::uint64_t> seed;  // absent: drawn at admission and kept
  int n = 1;                          // samples of one prompt; sample i draws with (seed, i)
  int max_tokens = 16;                // of the output
  int min_tokens = 0;                 // before these, no end-of-sequence or stop id is sampled
  bool ignore_eos = false;
  std::vector<int> stop_token_ids;
  std::shared_ptr<const TokenRules> token_rules;  // null: none
  std::optional<int> logprobs;         // 0: the chosen token's alone; k: also the k likeliest
  std::optional<int> prompt_logprobs;  // the same for the prompt's tokens
};

// The parameters that a checkpoint may set too. Absent: the request, or the checkpoint, does not
// set it.
struct PartialSampling {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int> top_k;
  std::optional<float> repetition_penalty;
  std::optional<int> repeat_last_n;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<int> mirostat;
  std::optional<float> mirostat_tau;
  std::optional<float> mirostat_eta;

  bool operator==(const PartialSampling&) const = default;
};

inline constexpr int kMaxLogprobs = 20;  // vLLM's --max-logprobs default
inline constexpr int kMaxSamples = 128;  // the largest n
// Limits of ranges that have no other limit: far beyond use, and no arithmetic overflows within
// them.
inline constexpr float kMaxTemperature = 1000;        // all tokens are equally likely long before
inline constexpr float kMaxRepetitionPenalty = 1000;  // only unseen tokens are left long before
inline constexpr float kMaxDynatemp = 100;            // for range and exponent
inline constexpr float kMaxMirostatTau = 100;
inline constexpr float kMaxDryMultiplier = 1000;
inline constexpr float kMaxDryBase = 1000;

// Checks every field. kInvalidArgument names the field and its range.
Status validate(const SamplingParams& params, int vocab_size);
Status validate(const TokenRules& rules, int vocab_size);

}  // namespace pagoda
