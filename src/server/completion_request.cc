#include "server/completion_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/json_body.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

constexpr FieldRange kIdRange = {.minimum = 0};
constexpr std::string_view kPromptSchema =
    R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}},
                  {"type": "array", "items": {"type": "integer"}},
                  {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}]})";

std::optional<ApiError> read_one_prompt(const RequestJson& value, PromptInput& prompt) {
  if (value.is_string()) {
    prompt = value.get<std::string>();
    return {};
  }
  if (!value.is_array())
    return wrong_type("prompt", "a string, a list of token ids, or a list of those", value);
  return read_ints("prompt", value, kIdRange, prompt.emplace<std::vector<int>>());
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
  std::vector<Field> table = generation_field_table(request.generation);
  table.push_back({.name = "prompt",
                   .target = CustomField{[&request](const RequestJson& value) {
                                           return read_prompts(value, request.prompts);
                                         },
                                         kPromptSchema},
                   .description = "Text, a list of texts, a list of token ids, or a list of those.",
                   .required = true});
  table.push_back({.name = "max_tokens",
                   .target = &request.generation.max_tokens,
                   .range = {.minimum = 0},
                   .description = "Of the answer; 16 where it is left out. 0 only with echo."});
  table.push_back({.name = "logprobs",
                   .target = &request.logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "Log-probabilities of the answer's tokens, with as many of the "
                                  "likeliest at each place."});
  table.push_back(
      {.name = "add_special_tokens",
       .target = &request.add_special_tokens,
       .description =
           "Lets the tokenizer put its own (such as a beginning of sequence) around a text."});
  table.push_back({.name = "suffix", .target = RefusedField{}});
  return table;
}

ApiResult<CompletionRequest> read_completion_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names) {
  auto parsed = parse_json_body(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  CompletionRequest request;
  if (auto error = read_fields(std::get<RequestJson>(parsed), completion_field_table(request),
                               unknown_names)) {
    return std::move(*error);
  }
  if (auto error = check_together(request.generation)) return std::move(*error);
  if (request.generation.max_tokens == 0 && !request.generation.echo) {
    return bad_request("max_tokens",
                       "'max_tokens': expected at least 1 where 'echo' is not set, got 0",
                       "out_of_range");
  }
  const std::size_t num_choices = request.prompts.size() * request.generation.n;
  if (num_choices > kMaxChoices) {
    return bad_request("n",
                       fmt::format("'n' times the number of prompts: expected at most {}, got {}",
                                   kMaxChoices, num_choices),
                       "out_of_range");
  }
  return request;
}

}  // namespace pagoda
