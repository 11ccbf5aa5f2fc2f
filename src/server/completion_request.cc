#include "server/completion_request.h"

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "server/known_fields.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

// As long a list of ids as a body may hold.
constexpr std::size_t kMaxPromptTokens = 16 << 20;

std::string_view prompt_schema() {
  static const std::string schema = [] {
    using nlohmann::json;
    const json text = {{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxTextChars}};
    const json id = {{"type", "integer"},
                     {"minimum", 0},
                     {"maximum", std::numeric_limits<int>::max()},
                     {"format", kTokenIdFormat}};
    const auto list = [](const json& items, std::size_t most) -> json {
      return {{"type", "array"}, {"items", items}, {"minItems", 1}, {"maxItems", most}};
    };
    const json ids = list(id, kMaxPromptTokens);
    return json({{"anyOf", {text, ids, list({{"anyOf", {text, ids}}}, kMaxPrompts)}}}).dump();
  }();
  return schema;
}

std::optional<ApiError> read_one_prompt(const RequestJson& value, PromptInput& prompt) {
  if (value.is_string()) {
    prompt = value.get<std::string>();
    return {};
  }
  if (!value.is_array())
    return wrong_type("prompt", "a string, a list of token ids, or a list of those", value);
  return read_ints({.name = "prompt",
                    .range = {.minimum = 0},
                    .size = {.max_items = kMaxPromptTokens, .min_items = 1}},
                   value, prompt.emplace<std::vector<int>>());
}

std::optional<ApiError> read_prompts(const RequestJson& value, std::vector<PromptInput>& prompts) {
  prompts.clear();
  const bool is_one = !value.is_array() || (!value.empty() && value.front().is_number());
  if (is_one) return read_one_prompt(value, prompts.emplace_back());
  if (value.empty())
    return bad_request("prompt",
                       "'prompt': expected at least one token or text, got an empty list");
  if (value.size() > kMaxPrompts) {
    return bad_request("prompt", fmt::format("'prompt': expected at most {} prompts, got {}",
                                             kMaxPrompts, value.size()));
  }
  for (const RequestJson& item : value) {
    if (auto error = read_one_prompt(item, prompts.emplace_back())) return error;
  }
  return {};
}

}  // namespace

std::vector<Field> completion_field_table(CompletionRequest& request) {
  std::vector<Field> table = generation_field_table(request.generation, /*fewest_tokens=*/0);
  table.push_back({.name = "prompt",
                   .target = CustomField{[&request](std::string_view, const RequestJson& value) {
                                           return read_prompts(value, request.prompts);
                                         },
                                         prompt_schema()},
                   .description = "Text, a list of texts, a list of token ids, or a list of those.",
                   .required = true});
  table.push_back({.name = "logprobs",
                   .target = &request.logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "Log-probabilities of the answer's tokens, with as many of the "
                                  "likeliest at each place."});
  table.push_back(
      {.name = "add_special_tokens",
       .target = &request.add_special_tokens,
       .description =
           "Lets the tokenizer put its own (such as a beginning of sequence) around a text.",
       .from = "vLLM"});
  add_known_fields(table, FieldPlace::kCompletions);
  return table;
}

nlohmann::json completion_request_schema() {
  CompletionRequest request;
  const std::vector<Field> table = completion_field_table(request);
  nlohmann::json schema = fields_schema(table);
  describe_options(schema, table);
  describe_together(schema);
  add_rule(schema,
           nlohmann::json::parse(
               R"({"anyOf": [{"required": ["echo"], "properties": {"echo": {"const": true}}},
      {"properties": {"max_tokens": {"minimum": 1}, "max_completion_tokens": {"minimum": 1},
                      "max_new_tokens": {"minimum": 1}}}]})"));
  return schema;
}

ApiResult<CompletionRequest> read_completion_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names) {
  CompletionRequest request;
  if (auto error = read_generation_body(body, completion_field_table(request), request.generation,
                                        unknown_names))
    return std::move(*error);
  if (request.generation.max_tokens == 0 && !request.generation.echo) {
    return bad_request("max_tokens",
                       "'max_tokens': expected at least 1 where 'echo' is not set, got 0",
                       "out_of_range");
  }
  const std::size_t num_choices = request.prompts.size() * request.generation.sampling.n;
  if (num_choices > kMaxChoices) {
    return bad_request("n",
                       fmt::format("'n' times the number of prompts: expected at most {}, got {}",
                                   kMaxChoices, num_choices),
                       "out_of_range");
  }
  return request;
}

}  // namespace pagoda
