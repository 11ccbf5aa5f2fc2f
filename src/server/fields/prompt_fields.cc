#include "server/fields/prompt_fields.h"

#include <fmt/format.h>
#include <limits>

#include "core/json.h"
#include "server/fields/generation_fields.h"

namespace pagoda {
namespace {

constexpr std::string_view kTruncation = "truncate_prompt_tokens";

std::optional<ApiError> read_one_prompt(std::string_view name, const RequestJson& value,
                                        PromptInput& prompt) {
  if (value.is_string()) {
    prompt = value.get<std::string>();
    return {};
  }
  if (!value.is_array())
    return wrong_type(name, "a string, a list of token ids, or a list of those", value);
  return read_ints({.name = name,
                    .range = {.minimum = 0},
                    .size = {.max_items = kMaxPromptTokens, .min_items = 1}},
                   value, prompt.emplace<std::vector<int>>());
}

}  // namespace

std::optional<ApiError> read_prompts(std::string_view name, const RequestJson& value,
                                     std::size_t most, std::vector<PromptInput>& prompts) {
  prompts.clear();
  const bool is_one = !value.is_array() || (!value.empty() && value.front().is_number());
  if (is_one) return read_one_prompt(name, value, prompts.emplace_back());
  if (value.empty()) {
    return bad_request(
        std::string(name),
        fmt::format("'{}': expected at least one token or text, got an empty list", name));
  }
  if (value.size() > most) {
    return bad_request(std::string(name), fmt::format("'{}': expected at most {} prompts, got {}",
                                                      name, most, value.size()));
  }
  for (const RequestJson& item : value) {
    if (auto error = read_one_prompt(name, item, prompts.emplace_back())) return error;
  }
  return {};
}

std::string prompts_schema(std::size_t most) {
  using nlohmann::json;
  const json text = {{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxTextChars}};
  const json id = {{"type", "integer"},
                   {"minimum", 0},
                   {"maximum", std::numeric_limits<int>::max()},
                   {"format", kTokenIdFormat}};
  const auto list = [](const json& items, std::size_t max_items) -> json {
    return {{"type", "array"}, {"items", items}, {"minItems", 1}, {"maxItems", max_items}};
  };
  const json ids = list(id, kMaxPromptTokens);
  return json_text(json({{"anyOf", {text, ids, list({{"anyOf", {text, ids}}}, most)}}}));
}

Field truncation_field(std::optional<int>& most, std::string_view description) {
  return {.name = kTruncation,
          .target = &most,
          .range = {.minimum = -1},
          .format = kTokenCountFormat,
          .description = description,
          .from = "vLLM"};
}

Field answered_truncation_field(std::optional<int>& most) {
  return truncation_field(most,
                          "Leaves the last ones of the prompt's tokens; -1: as many as leave room "
                          "for max_tokens in the context, or for one token.");
}

std::optional<ApiError> check_truncation(std::optional<int> most) {
  if (most != 0) return {};
  return bad_request(std::string(kTruncation),
                     fmt::format("'{}': expected a number of tokens, or -1, got 0", kTruncation),
                     "out_of_range");
}

void add_truncation_rule(nlohmann::json& schema) {
  add_rule(schema, {{"properties", {{kTruncation, {{"not", {{"const", 0}}}}}}}});
}

void add_names_of_requests(std::vector<Field>& table) {
  for (const auto& [from, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"OpenAI", "user"}, {"vLLM", "request_id"}, {"SGLang", "rid"}})
    table.push_back({.name = name, .target = IgnoredField{}, .from = from});
}

Field add_special_tokens_field(bool& add_special_tokens) {
  return {.name = "add_special_tokens",
          .target = &add_special_tokens,
          .description =
              "Lets the tokenizer put its own (such as a beginning of sequence) around a text.",
          .from = "vLLM"};
}

}  // namespace pagoda
