#include "server/prompt_encoding.h"

#include <algorithm>

#include "answer/tool_messages.h"
#include "text/token_bound.h"

namespace pagoda {
namespace {

ApiError too_long(const EngineLimits& limits, std::string_view param, std::string_view num_tokens) {
  return bad_request(
      std::string(param),
      fmt::format(
          "This model's maximum context length is {} tokens. However, your request has {} input "
          "tokens. Please reduce the length of the input messages.",
          limits.max_model_len, num_tokens),
      "context_length_exceeded");
}

std::optional<ApiError> check_token_ids(const EngineLimits& limits, const std::vector<int>& ids,
                                        std::string_view param) {
  if (ids.empty())
    return bad_request(std::string(param), "the prompt is empty: expected at least one token",
                       "empty_prompt");
  if (static_cast<int>(ids.size()) >= limits.max_model_len) {
    return too_long(limits, param, std::to_string(ids.size()));
  }
  const auto outside = [&](int id) { return id < 0 || id >= limits.vocab_size; };
  const auto found = std::find_if(ids.begin(), ids.end(), outside);
  if (found == ids.end()) return {};
  return bad_request(
      std::string(param),
      fmt::format("'{}': expected token ids below {}, got {}", param, limits.vocab_size, *found),
      "out_of_range");
}

ApiResult<EncodedPrompt> encode_text(const ServedModel& model, std::string text,
                                     bool add_special_tokens, std::string_view param) {
  const EngineLimits& limits = model.engine->limits();
  const auto exceeds = surely_exceeds(*model.tokenizer, text, limits.max_model_len - 1);
  if (!exceeds.ok()) return api_error(exceeds.status(), std::string(param));
  if (*exceeds) return too_long(limits, param, fmt::format("at least {}", limits.max_model_len));
  auto tokenized = tokenize_text(model, text, add_special_tokens, param);
  if (!tokenized.ok()) return std::move(tokenized).error();
  auto ids = *std::move(tokenized);
  if (auto error = check_token_ids(limits, ids, param)) return std::move(*error);
  return EncodedPrompt{std::move(ids), std::move(text)};
}

}  // namespace

ApiResult<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                       bool add_special_tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return encode_text(model, *text, add_special_tokens, "prompt");
  }
  const auto& ids = std::get<std::vector<int>>(prompt);
  if (auto error = check_token_ids(model.engine->limits(), ids, "prompt")) return std::move(*error);
  auto text = model.tokenizer->decode(ids, /*skip_special_tokens=*/false);
  // Ids that only the model has, in its padding, have no text.
  return EncodedPrompt{ids, text.ok() ? *std::move(text) : std::string()};
}

ApiResult<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                          bool add_special_tokens, std::string_view param) {
  auto ids = model.tokenizer->encode(text, {.add_special_tokens = add_special_tokens});
  if (!ids.ok()) return api_error(ids.status(), std::string(param));
  return *std::move(ids);
}

ApiResult<std::string> render_chat(const ServedModel& model, const ChatPrompt& prompt) {
  if (!model.chat_template) {
    return bad_request("messages", "this model has no chat template; use /v1/completions",
                       "no_chat_template");
  }
  const bool has_place_for_tools = model.answer_format.template_has_tools;
  std::string described;
  if (!prompt.tools_json.empty() && !has_place_for_tools)
    described = describe_tools(prompt.messages_json, prompt.tools_json);
  auto text = model.chat_template->render(
      {.messages_json = described.empty() ? prompt.messages_json : described,
       .tools_json = has_place_for_tools ? prompt.tools_json : "",
       .kwargs_json = prompt.template_kwargs_json,
       .bos_token = model.tokenizer->bos_token(),
       .eos_token = model.tokenizer->eos_token(),
       .add_generation_prompt = prompt.add_generation_prompt,
       .continue_final_message = prompt.continue_final_message});
  if (!text.ok()) return api_error(text.status(), "messages");
  return *std::move(text);
}

ApiResult<EncodedPrompt> encode_chat_prompt(const ServedModel& model, const ChatPrompt& prompt) {
  if (prompt.raw_text)
    return encode_text(model, *prompt.raw_text, /*add_special_tokens=*/true, "prompt");
  auto rendered = render_chat(model, prompt);
  if (!rendered.ok()) return std::move(rendered).error();
  return encode_text(model, *std::move(rendered), prompt.add_special_tokens, "messages");
}

ApiResult<int> settle_max_tokens(const ServedModel& model, int num_prompt_tokens,
                                 std::optional<int> asked, std::optional<int> fallback) {
  const int max_model_len = model.engine->limits().max_model_len;
  const int rest = max_model_len - num_prompt_tokens;
  if (!asked) return std::min(rest, fallback.value_or(rest));
  if (*asked <= rest) return *asked;
  return bad_request(
      "max_tokens",
      fmt::format(
          "'max_tokens' or 'max_completion_tokens' is too large: {}. This model's maximum context "
          "length is {} tokens and your request has {} input tokens ({} > {} - {}).",
          *asked, max_model_len, num_prompt_tokens, *asked, max_model_len, num_prompt_tokens),
      "context_length_exceeded");
}

}  // namespace pagoda
