#include "serving/prompt.h"

#include <algorithm>

#include "serving/conversation.h"
#include "serving/cut_prompt.h"
#include "serving/fill_in_prompt.h"
#include "text/token_bound.h"

namespace pagoda {
namespace {

Result<EncodedPrompt> encode_text(const ServedModel& model, std::string text,
                                  bool add_special_tokens, std::string_view field) {
  const EngineLimits& limits = model.engine->limits();
  const int most = most_prompt_tokens(limits);
  PAGODA_ASSIGN_OR_RETURN(
      std::vector<int> ids,
      token_ids_if_near(model, text, most, {.add_special_tokens = add_special_tokens}, field));
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most, field));
  return EncodedPrompt{std::move(ids), std::move(text)};
}

Result<std::string> render_fitted(const ServedModel& model, const ChatPrompt& prompt) {
  // A prompt that goes on from a context does not begin a text.
  const std::string_view bos =
      prompt.context.empty() ? std::string_view(model.tokenizer->bos_token()) : "";
  auto text =
      model.chat_template->render({.messages_json = prompt.messages_json,
                                   .tools_json = prompt.tools_json,
                                   .kwargs_json = prompt.template_kwargs_json,
                                   .bos_token = bos,
                                   .eos_token = model.tokenizer->eos_token(),
                                   .add_generation_prompt = prompt.add_generation_prompt,
                                   .continue_final_message = prompt.continue_final_message});
  if (!text.ok()) return text.status().of_field("messages");
  return text;
}

// Returns the first name that is not in the text; null: all are.
const std::string* missing_name(const std::vector<std::string>& names, const std::string& text) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return text.find(name) == std::string::npos;
  });
  return found == names.end() ? nullptr : &*found;
}

}  // namespace

int most_prompt_tokens(const EngineLimits& limits) {
  return limits.max_model_len - 1;
}

Result<std::vector<int>> encode_field(const Tokenizer& tokenizer, std::string_view text,
                                      EncodeOptions options, std::string_view field) {
  auto ids = tokenizer.encode(text, options);
  if (!ids.ok()) return ids.status().of_field(field);
  return ids;
}

Result<std::vector<int>> token_ids_if_near(const ServedModel& model, std::string_view text,
                                           int most, EncodeOptions options,
                                           std::string_view field) {
  const auto exceeds = surely_exceeds(*model.tokenizer, text, most);
  if (!exceeds.ok()) return exceeds.status().of_field(field);
  if (*exceeds) {
    const int max_model_len = model.engine->limits().max_model_len;
    return too_long_prompt(max_model_len, field, fmt::format("at least {}", most + 1));
  }
  return encode_field(*model.tokenizer, text, options, field);
}

Status check_token_ids(const EngineLimits& limits, const std::vector<int>& ids, int most,
                       std::string_view field) {
  if (ids.empty())
    return invalid_argument("the prompt is empty: expected at least one token")
        .of_field(field, "empty_prompt");
  if (std::ssize(ids) > most)
    return too_long_prompt(limits.max_model_len, field, std::to_string(ids.size()));
  const auto outside = [&](int id) { return id < 0 || id >= limits.vocab_size; };
  const auto found = std::find_if(ids.begin(), ids.end(), outside);
  if (found == ids.end()) return ok_status();
  return invalid_argument("'{}': expected token ids below {}, got {}", field, limits.vocab_size,
                          *found)
      .of_field(field, "out_of_range");
}

Status too_long_prompt(int max_model_len, std::string_view field, std::string_view num_tokens) {
  return invalid_argument(
             "This model's maximum context length is {} tokens. However, your request has {} input "
             "tokens. Please reduce the length of the input messages.",
             max_model_len, num_tokens)
      .of_field(field, "context_length_exceeded");
}

Result<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                    bool add_special_tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return encode_text(model, *text, add_special_tokens, "prompt");
  }
  const auto& ids = std::get<std::vector<int>>(prompt);
  const EngineLimits& limits = model.engine->limits();
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most_prompt_tokens(limits), "prompt"));
  if (!model.tokenizer) return EncodedPrompt{ids, {}};
  auto text = model.tokenizer->decode(ids, /*skip_special_tokens=*/false);
  // Ids in the padding of the model's vocabulary have no text.
  return EncodedPrompt{ids, text.ok() ? *std::move(text) : std::string()};
}

Result<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                       bool add_special_tokens, std::string_view field) {
  if (text.size() > kMaxTokenizedBytes) {
    return invalid_argument("expected at most {} bytes of text, got {}", kMaxTokenizedBytes,
                            text.size())
        .of_field(field);
  }
  const auto longest_piece = model.tokenizer->longest_piece(text);
  if (!longest_piece.ok()) return longest_piece.status().of_field(field);
  if (*longest_piece > kMaxTokenizedPiece) {
    return invalid_argument(
               "expected at most {} bytes of text that the tokenizer can't cut between words, got "
               "{}",
               kMaxTokenizedPiece, *longest_piece)
        .of_field(field);
  }
  return encode_field(*model.tokenizer, text, {.add_special_tokens = add_special_tokens}, field);
}

Result<std::string> render_chat(const ServedModel& model, ChatPrompt prompt) {
  if (!model.chat_template) {
    return invalid_argument("this model has no chat template: it takes plain prompts alone")
        .of_field("messages", "no_chat_template");
  }
  const TemplateTraits& traits = model.template_traits;
  const std::vector<std::string> tools = names_of_tools(prompt.tools_json);
  if (tools.empty() || traits.tool_variable != ToolVariable::kNone) {
    PAGODA_RETURN_IF_ERROR(fit_conversation(traits, /*tools_in_words=*/false, prompt));
    auto text = render_fitted(model, prompt);
    if (!text.ok() || missing_name(tools, *text) == nullptr) return text;
  }
  PAGODA_RETURN_IF_ERROR(fit_conversation(traits, /*tools_in_words=*/true, prompt));
  PAGODA_ASSIGN_OR_RETURN(std::string text, render_fitted(model, prompt));
  const std::string* const missing = missing_name(tools, text);
  if (missing == nullptr) return text;
  return invalid_argument("'tools': the chat template leaves out the function '{}'", *missing)
      .of_field("tools");
}

namespace {

// Encodes a conversation without the tokens of its context.
Result<EncodedPrompt> encode_conversation(const ServedModel& model, ChatPrompt prompt) {
  const bool begins_text = prompt.context.empty();
  if (!prompt.suffix.empty())
    return encode_fill_in(model, prompt.raw_text.value_or(""), prompt.suffix, begins_text);
  if (prompt.raw_text)
    return encode_text(model, *std::move(prompt.raw_text), begins_text, "prompt");
  const bool add_special_tokens = prompt.add_special_tokens;
  const bool is_for_counting = prompt.is_for_counting;
  const std::optional<int> cut_to = prompt.cut_to;
  PAGODA_ASSIGN_OR_RETURN(std::string rendered, render_chat(model, std::move(prompt)));
  if (!is_for_counting && !cut_to)
    return encode_text(model, std::move(rendered), add_special_tokens, "messages");
  std::vector<int> ids;
  if (cut_to) {
    PAGODA_ASSIGN_OR_RETURN(
        ids, encode_cut(model, rendered, add_special_tokens, {.most = *cut_to}, "messages"));
    const EngineLimits& limits = model.engine->limits();
    PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most_prompt_tokens(limits), "messages"));
  } else {
    PAGODA_ASSIGN_OR_RETURN(ids, tokenize_text(model, rendered, add_special_tokens, "messages"));
  }
  return EncodedPrompt{std::move(ids), std::move(rendered)};
}

}  // namespace

Result<EncodedPrompt> encode_chat_prompt(const ServedModel& model, ChatPrompt prompt) {
  if (prompt.context.empty()) return encode_conversation(model, std::move(prompt));
  const EngineLimits& limits = model.engine->limits();
  const int most = most_prompt_tokens(limits);
  std::vector<int> ids = prompt.context;
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most, "context"));
  PAGODA_ASSIGN_OR_RETURN(EncodedPrompt encoded, encode_conversation(model, std::move(prompt)));
  ids.insert(ids.end(), encoded.token_ids.begin(), encoded.token_ids.end());
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most, "context"));
  return EncodedPrompt{std::move(ids), std::move(encoded.text)};
}

int resolve_max_tokens(const ServedModel& model, int num_prompt_tokens, std::optional<int> asked) {
  const int rest = model.engine->limits().max_model_len - num_prompt_tokens;
  return std::min(rest, asked.value_or(rest));
}

}  // namespace pagoda
