#include "sampling/sampling_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sampling/sampling_fields.h"

namespace pagoda {
namespace {

// Returns the field's range as text: "[0, 1]", "(0, 1]" or "[1, inf)".
template <typename T>
std::string range_of(const SamplingField<T>& field) {
  return fmt::format("{}{}, {}{}", field.is_above_least ? "(" : "[", field.least, field.most,
                     std::isinf(field.most) ? ")" : "]");
}

// Checks one field after another, and keeps the first error.
struct Checker {
  const SamplingParams& params;
  int vocab_size;
  Status status;

  void operator()(const SamplingField<float>& field) {
    check(field, params.*field.member, "a number");
  }
  void operator()(const SamplingField<int>& field) {
    check(field, params.*field.member, "an integer");
  }
  void operator()(const SamplingField<std::optional<int>>& field) {
    if (params.*field.member) check(field, *(params.*field.member), "an integer");
  }
  void operator()(const SamplingField<bool>&) {}
  void operator()(const SamplingField<std::vector<int>>& field) {
    SamplingField<std::vector<int>> ids = field;
    ids.most = vocab_size - 1;
    for (const int id : params.*field.member) check(ids, id, "an integer");
  }

  // Returns false for NaN.
  template <typename T>
  static bool is_within(const SamplingField<T>& field, double value) {
    if (!field.values.empty()) {
      return std::find(field.values.begin(), field.values.end(), value) != field.values.end();
    }
    return (field.is_above_least ? value > field.least : value >= field.least) &&
           value <= field.most && std::isfinite(value);
  }

  template <typename T, typename Value>
  void check(const SamplingField<T>& field, Value value, const char* kind) {
    if (!status.ok() || is_within(field, static_cast<double>(value))) return;
    const std::string expected = field.values.empty()
                                     ? fmt::format("{} of {}", kind, range_of(field))
                                     : fmt::format("{}", fmt::join(field.values, " or "));
    status = invalid_argument("[sampling] {}: expected {}, got {}", field.name, expected, value);
  }
};

Status check_integer(const char* name, int value, int low, int high) {
  if (value >= low && value <= high) return ok_status();
  return invalid_argument("[sampling] {}: expected an integer of [{}, {}], got {}", name, low, high,
                          value);
}

Status check_lengths(const SamplingParams& params) {
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

void resolve_sampling(const PartialSampling& asked, const PartialSampling& checkpoint,
                      SamplingParams& params) {
  for_each_sampling_field([&](const auto& field) {
    if (field.partial == nullptr) return;
    const auto& said = asked.*field.partial ? asked.*field.partial : checkpoint.*field.partial;
    if (said) params.*field.member = *said;
  });
}

Status validate(const SamplingParams& params, int vocab_size) {
  Checker checker{params, vocab_size, ok_status()};
  for_each_sampling_field(checker);
  PAGODA_RETURN_IF_ERROR(checker.status);
  PAGODA_RETURN_IF_ERROR(check_lengths(params));
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
