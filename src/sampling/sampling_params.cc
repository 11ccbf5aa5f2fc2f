#include "sampling/sampling_params.h"

#include <cmath>
#include <limits>

namespace pagoda {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

Status check_number(const char* name, float value, float low, float high) {
  if (value >= low && value <= high) return ok_status();  // false for NaN
  return invalid_argument("[sampling] {}: expected a number of [{}, {}], got {}", name, low, high,
                          value);
}

Status check_integer(const char* name, int value, int low, int high) {
  if (value >= low && value <= high) return ok_status();
  return invalid_argument("[sampling] {}: expected an integer of [{}, {}], got {}", name, low, high,
                          value);
}

Status check_temperature(const SamplingParams& params) {
  if (!(params.temperature >= 0) || !std::isfinite(params.temperature)) {
    return invalid_argument("[sampling] temperature: expected a finite number from 0, got {}",
                            params.temperature);
  }
  PAGODA_RETURN_IF_ERROR(check_number("dynatemp_range", params.dynatemp_range, 0, kMaxDynatemp));
  return check_number("dynatemp_exponent", params.dynatemp_exponent, 0, kMaxDynatemp);
}

Status check_share(const char* name, float value) {
  if (value > 0 && value <= 1) return ok_status();
  return invalid_argument("[sampling] {}: expected a number of (0, 1], got {}", name, value);
}

Status check_mirostat(const SamplingParams& params) {
  if (params.mirostat != 0 && params.mirostat != 2) {
    return invalid_argument("[sampling] mirostat: expected 0 (off) or 2, got {}", params.mirostat);
  }
  PAGODA_RETURN_IF_ERROR(check_number("mirostat_tau", params.mirostat_tau, 0, kMaxMirostatTau));
  return check_number("mirostat_eta", params.mirostat_eta, 0, 1);
}

Status check_filters(const SamplingParams& params) {
  PAGODA_RETURN_IF_ERROR(check_share("top_p", params.top_p));
  PAGODA_RETURN_IF_ERROR(check_share("typical_p", params.typical_p));
  if (params.top_k < -1) {
    return invalid_argument(
        "[sampling] top_k: expected -1 or 0 (off) or a positive integer, got {}", params.top_k);
  }
  PAGODA_RETURN_IF_ERROR(check_number("min_p", params.min_p, 0, 1));
  PAGODA_RETURN_IF_ERROR(check_number("xtc_probability", params.xtc_probability, 0, 1));
  PAGODA_RETURN_IF_ERROR(check_number("xtc_threshold", params.xtc_threshold, 0, 1));
  return check_mirostat(params);
}

Status check_penalties(const SamplingParams& params) {
  if (!(params.repetition_penalty > 0) || !std::isfinite(params.repetition_penalty)) {
    return invalid_argument(
        "[sampling] repetition_penalty: expected a finite number above 0, got {}",
        params.repetition_penalty);
  }
  PAGODA_RETURN_IF_ERROR(check_number("presence_penalty", params.presence_penalty, -2, 2));
  return check_number("frequency_penalty", params.frequency_penalty, -2, 2);
}

Status check_dry(const SamplingParams& params) {
  PAGODA_RETURN_IF_ERROR(
      check_number("dry_multiplier", params.dry_multiplier, 0, kMaxDryMultiplier));
  PAGODA_RETURN_IF_ERROR(check_number("dry_base", params.dry_base, 1, kMaxDryBase));
  PAGODA_RETURN_IF_ERROR(
      check_integer("dry_allowed_length", params.dry_allowed_length, 1, kMaxInt));
  return check_integer("dry_penalty_last_n", params.dry_penalty_last_n, -1, kMaxInt);
}

Status check_lengths(const SamplingParams& params) {
  PAGODA_RETURN_IF_ERROR(check_integer("n", params.n, 1, kMaxSamples));
  // Scoring a prompt needs no output; anything else without output is a mistake.
  const int least = params.prompt_logprobs ? 0 : 1;
  if (params.max_tokens < least) {
    return invalid_argument(
        "[sampling] max_tokens: expected an integer from 1 (0 with prompt_logprobs), got {}",
        params.max_tokens);
  }
  return check_integer("min_tokens", params.min_tokens, 0, params.max_tokens);
}

}  // namespace

Status validate(const SamplingParams& params, int vocab_size) {
  PAGODA_RETURN_IF_ERROR(check_temperature(params));
  PAGODA_RETURN_IF_ERROR(check_filters(params));
  PAGODA_RETURN_IF_ERROR(check_penalties(params));
  PAGODA_RETURN_IF_ERROR(check_dry(params));
  PAGODA_RETURN_IF_ERROR(check_lengths(params));
  for (const int id : params.stop_token_ids) {
    PAGODA_RETURN_IF_ERROR(check_integer("stop_token_ids", id, 0, vocab_size - 1));
  }
  if (params.token_rules) PAGODA_RETURN_IF_ERROR(validate(*params.token_rules, vocab_size));
  if (params.logprobs)
    PAGODA_RETURN_IF_ERROR(check_integer("logprobs", *params.logprobs, 0, kMaxLogprobs));
  if (params.prompt_logprobs) {
    PAGODA_RETURN_IF_ERROR(
        check_integer("prompt_logprobs", *params.prompt_logprobs, 0, kMaxLogprobs));
  }
  return ok_status();
}

}  // namespace pagoda
