#include "server/fields/token_rule_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "core/json.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

// Reads a number as JSON writes it: no sign, no leading zeros.
bool read_key(const std::string& key, int& token_id) {
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token_id);
  return error == std::errc() && end == key.data() + key.size() && token_id >= 0 &&
         key == std::to_string(token_id);
}

MaybeError read_bias(const std::string& key, const RequestJson& value, LogitBias& entry) {
  if (!read_key(key, entry.token_id)) {
    return bad_request("logit_bias",
                       fmt::format("'logit_bias': expected token ids as names, got '{}'", key));
  }
  if (value == RequestJson(false)) {
    entry.bias = -std::numeric_limits<float>::infinity();
    return {};
  }
  if (!value.is_number()) return wrong_type("logit_bias", "numbers, or false for a ban", value);
  const auto bias = value.get<double>();
  if (!(bias >= -kMaxLogitBias && bias <= kMaxLogitBias)) {
    return bad_request("logit_bias",
                       fmt::format("'logit_bias': expected numbers at least {} and at most {}, "
                                   "got {} for token {}",
                                   -kMaxLogitBias, kMaxLogitBias, bias, key),
                       "out_of_range");
  }
  entry.bias = static_cast<float>(bias);
  return {};
}

MaybeError read_logit_bias(const RequestJson& value, std::vector<LogitBias>& out) {
  if (!value.is_object()) return wrong_type("logit_bias", "an object", value);
  if (value.size() > kMaxLogitBiases) {
    return bad_request("logit_bias",
                       fmt::format("'logit_bias': expected at most {} tokens, got {}",
                                   kMaxLogitBiases, value.size()),
                       "out_of_range");
  }
  out.clear();
  for (const auto& [key, bias] : value.items()) {
    if (auto error = read_bias(key, bias, out.emplace_back())) return error;
  }
  return {};
}

std::string_view logit_bias_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "object", "maxProperties": {}, "propertyNames": {{"format": "{}"}},
           "additionalProperties": {{"anyOf": [{{"type": "number", "minimum": {}, "maximum": {}}},
                                               {{"const": false}}]}}}})",
      kMaxLogitBiases, kTokenKeyFormat, -kMaxLogitBias, kMaxLogitBias);
  return schema;
}

// A string may become two bad words (sampling/token_rules.h).
constexpr int kMaxBadWordStrings = kMaxBadWords / 2;

MaybeError read_allowed(const RequestJson& value, std::vector<int>& out) {
  return read_ints({.name = "allowed_token_ids",
                    .range = {.minimum = 0},
                    .size = {.max_items = kMaxAllowedTokens, .min_items = 1}},
                   value, out);
}

std::string_view allowed_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "minItems": 1, "maxItems": {}, "items": {{"type": "integer", "minimum": 0,
           "maximum": 2147483647, "format": "{}"}}}})",
      kMaxAllowedTokens, kTokenIdFormat);
  return schema;
}

MaybeError read_bad_words(const RequestJson& value, std::vector<std::string>& out) {
  const Field field = {
      .name = "bad_words",
      .size = {.max_chars = kMaxBadWordChars, .min_chars = 1, .max_items = kMaxBadWordStrings}};
  if (auto error = read_strings(field, value, out)) return error;
  std::size_t total = 0;
  for (const std::string& word : out) total += word.size();
  if (total <= kMaxBadWordBytes) return {};
  return bad_request("bad_words",
                     fmt::format("'bad_words': expected at most {} bytes together, got {}",
                                 kMaxBadWordBytes, total),
                     "out_of_range");
}

std::string_view bad_words_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "maxItems": {}, "items": {{"type": "string", "minLength": 1, "maxLength": {}}}}})",
      kMaxBadWordStrings, kMaxBadWordChars);
  return schema;
}

}  // namespace

void add_token_rule_fields(std::vector<Field>& table, TokenRuleFields& fields) {
  table.push_back({.name = "logit_bias",
                   .target = CustomField{[&fields](std::string_view, const RequestJson& value) {
                                           return read_logit_bias(value, fields.logit_bias);
                                         },
                                         logit_bias_schema()},
                   .description = "By token id, added to its logit; false bans the token."});
  table.push_back({.name = "allowed_token_ids",
                   .target = CustomField{[&fields](std::string_view, const RequestJson& value) {
                                           return read_allowed(value,
                                                               fields.allowed_token_ids.emplace());
                                         },
                                         allowed_schema()},
                   .description = "All other tokens are banned, the end of sequence too.",
                   .from = "vLLM"});
  table.push_back({.name = "bad_words",
                   .target = CustomField{[&fields](std::string_view, const RequestJson& value) {
                                           return read_bad_words(value, fields.bad_words);
                                         },
                                         bad_words_schema()},
                   .description = "Words that the answer never holds, as the tokenizer writes them "
                                  "at a text's beginning and after a space; of 16384 bytes "
                                  "together.",
                   .from = "vLLM"});
  table.push_back(
      {.name = "dry_sequence_breakers",
       .target = &fields.dry_sequence_breakers,
       .size = {.max_chars = kMaxSequenceBreakerChars,
                .min_chars = 1,
                .max_items = kMaxSequenceBreakers},
       .description = "A repetition is not followed over a token that holds one of these.",
       .from = "llama.cpp"});
}

}  // namespace pagoda
