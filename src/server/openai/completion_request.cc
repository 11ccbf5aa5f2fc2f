#include "server/openai/completion_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/fields/known_fields.h"

namespace pagoda {
namespace {

std::string_view prompt_schema() {
  static const std::string schema = prompts_schema(kMaxPrompts);
  return schema;
}

}  // namespace

std::vector<Field> completion_field_table(CompletionRequest& request) {
  std::vector<Field> table = generation_field_table(request.generation, /*fewest_tokens=*/0);
  table.push_back(
      {.name = "prompt",
       .target = CustomField{[&request](std::string_view name, const RequestJson& value) {
                               return read_prompts(name, value, kMaxPrompts, request.prompts);
                             },
                             prompt_schema()},
       .description = "Text, a list of texts, a list of token ids, or a list of those.",
       .required = true});
  table.push_back({.name = "suffix",
                   .target = &request.suffix,
                   .size = {.max_chars = kMaxTextChars},
                   .description = "A text behind the answer, for models that were trained to fill "
                                  "in; the prompt is the text before it."});
  table.push_back({.name = "logprobs",
                   .target = &request.logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "Log-probabilities of the answer's tokens, with as many of the "
                                  "likeliest at each place."});
  table.push_back(add_special_tokens_field(request.add_special_tokens));
  table.push_back(answered_truncation_field(request.truncate_prompt_tokens));
  add_known_fields(table, FieldPlace::kCompletions);
  return table;
}

nlohmann::json completion_request_schema() {
  CompletionRequest request;
  const std::vector<Field> table = completion_field_table(request);
  nlohmann::json schema = generation_schema(table);
  add_rule(schema,
           parse_json(
               R"({"anyOf": [{"required": ["echo"], "properties": {"echo": {"const": true}}},
      {"properties": {"max_tokens": {"not": {"const": 0}}, "max_new_tokens": {"not": {"const": 0}},
                      "max_completion_tokens": {"not": {"const": 0}}}}]})"));
  add_truncation_rule(schema);
  add_rule(schema, parse_json(R"({"anyOf": [{"properties": {"suffix": {"enum": ["", null]}}},
      {"properties": {"echo": {"enum": [false, null]}, "truncate_prompt_tokens": {"type": "null"},
        "prompt": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}}]})"));
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
  if (auto error = check_truncation(request.truncate_prompt_tokens)) return std::move(*error);
  if (!request.suffix.empty()) {
    if (request.truncate_prompt_tokens) {
      return bad_request("truncate_prompt_tokens",
                         "'truncate_prompt_tokens' and 'suffix' must not both be there");
    }
    if (request.generation.echo)
      return bad_request("echo", "'echo' and 'suffix' must not both be there");
    const bool all_texts = std::ranges::all_of(request.prompts, [](const PromptInput& prompt) {
      return std::holds_alternative<std::string>(prompt);
    });
    if (!all_texts) return bad_request("prompt", "'prompt': expected a text beside 'suffix'");
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
