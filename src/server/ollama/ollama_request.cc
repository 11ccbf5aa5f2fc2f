#include "server/ollama/ollama_request.h"

#include <algorithm>
#include <iterator>

#include "core/json.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {
namespace {

constexpr std::string_view kFromOllama = "Ollama";

// Changes the fields whose meaning in Ollama is not quite that of other servers. A num_predict of 0
// leaves max_tokens as it is.
void change_to_ollamas(GenerationFields& fields, std::vector<Field>& table) {
  const auto length = std::ranges::find(table, "n_predict", &Field::name);
  length->target = &fields.n_predict;
  length->range = {.minimum = -2, .saturates = true};
  length->description = "The most tokens of the answer; 0, -1 and -2 are no bound.";
  std::ranges::find(table, "truncate_prompt_tokens", &Field::name)->target =
      RefusedField{.neutral = "[]", .instead = "a shorter prompt"};
  const auto top = std::ranges::find(table, "top_logprobs", &Field::name);
  top->description = "The likeliest tokens at each place; changes nothing without logprobs.";
}

std::vector<Field> ollama_chat_field_table(ChatRequest& request) {
  std::vector<Field> table = chat_field_table(request);
  change_to_ollamas(request.generation, table);
  return table;
}

}  // namespace

std::vector<Field> ollama_generate_field_table(OllamaGenerateRequest& request) {
  constexpr std::string_view kChatsOwn[] = {"messages",
                                            "add_generation_prompt",
                                            "continue_final_message",
                                            "add_special_tokens",
                                            "tools",
                                            "tool_choice",
                                            "parallel_tool_calls",
                                            "functions",
                                            "function_call",
                                            "n",
                                            "system",
                                            "raw",
                                            "context"};
  std::vector<Field> table = ollama_chat_field_table(request.chat);
  std::erase_if(table, [&](const Field& field) {
    return std::ranges::find(kChatsOwn, field.name) != std::end(kChatsOwn);
  });
  table.push_back({.name = "prompt",
                   .target = &request.prompt,
                   .size = {.max_chars = kMaxTextChars},
                   .from = kFromOllama});
  table.push_back({.name = "system",
                   .target = &request.system,
                   .size = {.max_chars = kMaxTextChars},
                   .from = kFromOllama});
  table.push_back({.name = "raw",
                   .target = &request.is_raw,
                   .description = "Takes the prompt as it is, without the chat template.",
                   .from = kFromOllama});
  table.push_back({.name = "context",
                   .target = &request.chat.prompt.context,
                   .range = {.minimum = 0},
                   .size = {.max_items = kMaxPromptTokens},
                   .format = kTokenIdFormat,
                   .description = "Token ids of the conversation so far, as the last answer tells "
                                  "them; the prompt goes behind them.",
                   .from = kFromOllama});
  table.push_back({.name = "suffix",
                   .target = &request.suffix,
                   .size = {.max_chars = kMaxTextChars},
                   .description = "A text behind the answer, for models that were trained to fill "
                                  "in; the prompt is the text before it, without the template.",
                   .from = kFromOllama});
  return table;
}

ApiResult<ChatRequest> read_ollama_chat_request(RequestJson body,
                                                std::vector<std::string>& unknown_names) {
  ChatRequest request;
  if (auto error = read_chat_fields(std::move(body), ollama_chat_field_table(request), request,
                                    unknown_names))
    return std::move(*error);
  return request;
}

ApiResult<OllamaGenerateRequest> read_ollama_generate_request(
    RequestJson body, std::vector<std::string>& unknown_names) {
  OllamaGenerateRequest request;
  if (auto error = read_generation_fields(std::move(body), ollama_generate_field_table(request),
                                          request.chat.generation, unknown_names))
    return std::move(*error);
  return request;
}

nlohmann::json ollama_chat_schema() {
  ChatRequest request;
  return chat_fields_schema(ollama_chat_field_table(request));
}

nlohmann::json ollama_generate_schema() {
  OllamaGenerateRequest request;
  return generation_schema(ollama_generate_field_table(request));
}

}  // namespace pagoda
