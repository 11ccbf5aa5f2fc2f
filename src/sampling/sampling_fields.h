// The list of a request's sampling fields: name, member, range, help. Validation, the JSON of
// requests and its schema, command-line flags and lines of --prompts-file are all made from this
// list.
//
// Fields that each of these handles in its own way are not listed: seed, max_tokens,
// log-probabilities and the rules for single tokens.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {

// The type of a value that may be absent: std::optional<T>, or T if it is one already.
template <typename T>
struct Partial {
  using Type = std::optional<T>;
};
template <typename T>
struct Partial<std::optional<T>> {
  using Type = std::optional<T>;
};

// T: float, int, std::optional<int>, bool or std::vector<int>.
template <typename T>
struct SamplingField {
  const char* name;
  T SamplingParams::*member;
  // Set if a checkpoint may have a value for the field, which replaces the default.
  typename Partial<T>::Type PartialSampling::*partial = nullptr;
  // The range of a number, or of a list's numbers.
  double least = -std::numeric_limits<double>::infinity();
  bool is_above_least = false;  // true: `least` itself is excluded
  double most = std::numeric_limits<double>::infinity();
  std::span<const int> values = {};  // the only values allowed; empty: all in the range
  const char* help = "";
  const char* from = "";        // the server that the name is from; empty: OpenAI
  const char* alias = nullptr;  // another name in requests
  // Whether only the host can draw a row if this field is not the default. A new field stays so
  // until an op knows it. (DRY's fields are false here: RowChanges::cover() checks them.)
  bool host_only = true;
};

inline constexpr int kMirostatVersions[] = {0, 1, 2};

inline constexpr SamplingField<float> kSamplingNumbers[] = {
    {.name = "temperature",
     .member = &SamplingParams::temperature,
     .partial = &PartialSampling::temperature,
     .least = 0,
     .most = kMaxTemperature,
     .help = "0 is greedy.",
     .host_only = false},
    {.name = "top_p",
     .member = &SamplingParams::top_p,
     .partial = &PartialSampling::top_p,
     .least = 0,
     .is_above_least = true,
     .most = 1,
     .help = "Keeps the likeliest tokens that together reach this share; 1 is off.",
     .host_only = false},
    {.name = "min_p",
     .member = &SamplingParams::min_p,
     .partial = &PartialSampling::min_p,
     .least = 0,
     .most = 1,
     .help = "Keeps tokens at least this likely against the likeliest; 0 is off.",
     .from = "vLLM",
     .host_only = false},
    {.name = "repetition_penalty",
     .member = &SamplingParams::repetition_penalty,
     .partial = &PartialSampling::repetition_penalty,
     .least = 0,
     .is_above_least = true,
     .most = kMaxRepetitionPenalty,
     .help = "Divides (or multiplies) the logits of tokens seen; 1 is off.",
     .from = "vLLM",
     .alias = "repeat_penalty",
     .host_only = false},
    {.name = "presence_penalty",
     .member = &SamplingParams::presence_penalty,
     .least = -2,
     .most = 2,
     .help = "Subtracted once from the logits of tokens in the answer; 0 is off.",
     .host_only = false},
    {.name = "frequency_penalty",
     .member = &SamplingParams::frequency_penalty,
     .least = -2,
     .most = 2,
     .help = "Subtracted from the logits of tokens in the answer, each time they come; 0 is off.",
     .host_only = false},
    {.name = "dynatemp_range",
     .member = &SamplingParams::dynatemp_range,
     .least = 0,
     .most = kMaxDynatemp,
     .help = "Lets the temperature vary that much either way, with the entropy.",
     .from = "llama.cpp"},
    {.name = "dynatemp_exponent",
     .member = &SamplingParams::dynatemp_exponent,
     .least = 0,
     .most = kMaxDynatemp,
     .help = "The power of the entropy's share, where dynatemp_range is given.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "typical_p",
     .member = &SamplingParams::typical_p,
     .least = 0,
     .is_above_least = true,
     .most = 1,
     .help = "Keeps the tokens nearest to the expected surprise; 1 is off.",
     .from = "llama.cpp"},
    {.name = "xtc_probability",
     .member = &SamplingParams::xtc_probability,
     .partial = &PartialSampling::xtc_probability,
     .least = 0,
     .most = 1,
     .help = "How often the likeliest choices are excluded; 0 is off.",
     .from = "llama.cpp"},
    {.name = "xtc_threshold",
     .member = &SamplingParams::xtc_threshold,
     .partial = &PartialSampling::xtc_threshold,
     .least = 0,
     .most = 1,
     .help = "Of tokens at least this likely all but the least likely are excluded.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "mirostat_tau",
     .member = &SamplingParams::mirostat_tau,
     .partial = &PartialSampling::mirostat_tau,
     .least = 0,
     .most = kMaxMirostatTau,
     .help = "The surprise that mirostat holds, in bits.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "mirostat_eta",
     .member = &SamplingParams::mirostat_eta,
     .partial = &PartialSampling::mirostat_eta,
     .least = 0,
     .most = 1,
     .help = "How fast mirostat learns.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "dry_multiplier",
     .member = &SamplingParams::dry_multiplier,
     .least = 0,
     .most = kMaxDryMultiplier,
     .help = "Penalises what would go on with a repetition; 0 is off.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "dry_base",
     .member = &SamplingParams::dry_base,
     .least = 1,
     .most = kMaxDryBase,
     .help = "The factor by which the penalty grows with each repeated token.",
     .from = "llama.cpp",
     .host_only = false},
};

inline constexpr SamplingField<int> kSamplingIntegers[] = {
    {.name = "top_k",
     .member = &SamplingParams::top_k,
     .partial = &PartialSampling::top_k,
     .least = -1,
     .help = "Keeps that many of the likeliest tokens; 0 or -1 is off.",
     .from = "vLLM",
     .host_only = false},
    {.name = "mirostat",
     .member = &SamplingParams::mirostat,
     .partial = &PartialSampling::mirostat,
     .values = kMirostatVersions,
     .help = "1 or 2: holds the surprise at mirostat_tau, instead of all other filters.",
     .from = "llama.cpp"},
    {.name = "dry_allowed_length",
     .member = &SamplingParams::dry_allowed_length,
     .least = 1,
     .help = "Repetitions shorter than this are not penalised.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "dry_penalty_last_n",
     .member = &SamplingParams::dry_penalty_last_n,
     .least = -1,
     .help = "How many tokens DRY looks back over; -1 is all, 0 is off.",
     .from = "llama.cpp",
     .host_only = false},
    {.name = "n",
     .member = &SamplingParams::n,
     .least = 1,
     .most = kMaxSamples,
     .help = "Answers to each prompt.",
     .alias = "n_cmpl",
     .host_only = false},
    {.name = "min_tokens",
     .member = &SamplingParams::min_tokens,
     .least = 0,
     .help = "The answer does not end before so many tokens, but by max_tokens.",
     .from = "vLLM",
     .alias = "min_new_tokens",
     .host_only = false},
};

inline constexpr SamplingField<std::optional<int>> kSamplingOptionals[] = {
    {.name = "repeat_last_n",
     .member = &SamplingParams::repeat_last_n,
     .partial = &PartialSampling::repeat_last_n,
     .least = -1,
     .help = "The last tokens, of prompt and answer alike, that the three penalties count; -1 is "
             "all, 0 turns them off.",
     .from = "llama.cpp",
     .host_only = false},
};

inline constexpr SamplingField<bool> kSamplingFlags[] = {
    {.name = "ignore_eos",
     .member = &SamplingParams::ignore_eos,
     .help = "Goes on past the model's end-of-sequence tokens.",
     .from = "vLLM",
     .host_only = false},
};

inline constexpr SamplingField<std::vector<int>> kSamplingLists[] = {
    {.name = "stop_token_ids",
     .member = &SamplingParams::stop_token_ids,
     .least = 0,
     .help = "Tokens that end the answer.",
     .from = "vLLM",
     .host_only = false},
};

template <typename Visit>
void for_each_sampling_field(Visit&& visit) {
  for (const auto& field : kSamplingNumbers) visit(field);
  for (const auto& field : kSamplingIntegers) visit(field);
  for (const auto& field : kSamplingOptionals) visit(field);
  for (const auto& field : kSamplingFlags) visit(field);
  for (const auto& field : kSamplingLists) visit(field);
}

// Sets params to what the request says and, for fields that it leaves out, what the checkpoint
// says.
void resolve_sampling(const PartialSampling& asked, const PartialSampling& checkpoint,
                      SamplingParams& params);

}  // namespace pagoda
