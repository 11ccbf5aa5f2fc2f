#include "server/token_rule_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "server/request_json.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::string_view kLogitBiasSchema =
    R"({"type": ["object", "null"], "additionalProperties":
        {"anyOf": [{"type": "number", "minimum": -100, "maximum": 100}, {"const": false}]}})";
constexpr std::string_view kTokenIdsSchema =
    R"({"type": ["array", "null"], "minItems": 1, "items": {"type": "integer", "minimum": 0}})";
constexpr std::string_view kStringsSchema =
    R"({"type": ["array", "null"], "items": {"type": "string", "minLength": 1}})";

MaybeError read_bias(const std::string& key, const RequestJson& value, LogitBias& entry) {
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), entry.token_id);
  if (error != std::errc() || end != key.data() + key.size() || entry.token_id < 0) {
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
  out.clear();
  for (const auto& [key, bias] : value.items()) {
    if (auto error = read_bias(key, bias, out.emplace_back())) return error;
  }
  return {};
}

MaybeError read_allowed(const RequestJson& value, std::optional<std::vector<int>>& out) {
  if (auto error = read_ints("allowed_token_ids", value, {.minimum = 0}, out.emplace()))
    return error;
  if (!out->empty()) return {};
  return bad_request("allowed_token_ids",
                     "'allowed_token_ids': expected at least one token id, got an empty list",
                     "out_of_range");
}

struct TextListLimits {
  std::string_view name;
  std::size_t max_strings = 0;
  std::size_t max_bytes = 0;  // of one
  std::size_t max_total = 0;  // bytes of all
};

constexpr TextListLimits kBadWords = {
    .name = "bad_words",
    .max_strings = kMaxBadWords / 2,  // each may be two, sampling/token_rules.h
    .max_bytes = kMaxBadWordBytes,
    .max_total = kMaxBadWordBytes};
constexpr TextListLimits kBreakers = {
    .name = "dry_sequence_breakers",
    .max_strings = kMaxSequenceBreakers,
    .max_bytes = kMaxSequenceBreakerBytes,
    .max_total = std::size_t{kMaxSequenceBreakers} * kMaxSequenceBreakerBytes};

MaybeError read_texts(const RequestJson& value, const TextListLimits& limits,
                      std::vector<std::string>& out) {
  if (!value.is_array()) return wrong_type(limits.name, "a list of strings", value);
  out.clear();
  std::size_t total = 0;
  std::size_t longest = 0;
  for (const RequestJson& item : value) {
    if (!item.is_string()) return wrong_type(limits.name, "a list of strings", item);
    const auto& text = out.emplace_back(item.get<std::string>());
    if (text.empty()) {
      return bad_request(std::string(limits.name),
                         fmt::format("'{}': a string must not be empty", limits.name));
    }
    total += text.size();
    longest = std::max(longest, text.size());
  }
  if (out.size() <= limits.max_strings && longest <= limits.max_bytes && total <= limits.max_total)
    return {};
  return bad_request(
      std::string(limits.name),
      fmt::format("'{}': expected at most {} strings of at most {} bytes, {} together, got {} of "
                  "up to {}, {} together",
                  limits.name, limits.max_strings, limits.max_bytes, limits.max_total, out.size(),
                  longest, total),
      "out_of_range");
}

}  // namespace

void add_token_rule_fields(std::vector<Field>& table, TokenRuleFields& fields) {
  table.push_back({.name = "logit_bias",
                   .target = CustomField{[&fields](const RequestJson& value) {
                                           return read_logit_bias(value, fields.logit_bias);
                                         },
                                         kLogitBiasSchema},
                   .description = "By token id, added to its logit; false bans the token."});
  table.push_back({.name = "allowed_token_ids",
                   .target = CustomField{[&fields](const RequestJson& value) {
                                           return read_allowed(value, fields.allowed_token_ids);
                                         },
                                         kTokenIdsSchema},
                   .description = "All other tokens are banned, the end of sequence too."});
  table.push_back({.name = "bad_words",
                   .target = CustomField{[&fields](const RequestJson& value) {
                                           return read_texts(value, kBadWords, fields.bad_words);
                                         },
                                         kStringsSchema},
                   .description = "Words that the answer never holds, as the tokenizer writes "
                                  "them at a text's beginning and after a space."});
  table.push_back(
      {.name = "dry_sequence_breakers",
       .target = CustomField{[&fields](const RequestJson& value) {
                               return read_texts(value, kBreakers, fields.dry_sequence_breakers);
                             },
                             kStringsSchema},
       .description = "A repetition is not followed over a token that holds one of these."});
}

}  // namespace pagoda
