#include "server/generation/prompt_encoding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "answer/tool_messages.h"
#include "text/token_bound.h"

namespace pagoda {
namespace {

ApiError too_long(int max_model_len, std::string_view param, std::string_view num_tokens) {
  return bad_request(
      std::string(param),
      fmt::format(
          "This model's maximum context length is {} tokens. However, your request has {} input "
          "tokens. Please reduce the length of the input messages.",
          max_model_len, num_tokens),
      "context_length_exceeded");
}

// `most`: tokens that the prompt may have.
std::optional<ApiError> check_token_ids(const EngineLimits& limits, const std::vector<int>& ids,
                                        int most, std::string_view param) {
  if (ids.empty())
    return bad_request(std::string(param), "the prompt is empty: expected at least one token",
                       "empty_prompt");
  if (std::ssize(ids) > most)
    return too_long(limits.max_model_len, param, std::to_string(ids.size()));
  const auto outside = [&](int id) { return id < 0 || id >= limits.vocab_size; };
  const auto found = std::find_if(ids.begin(), ids.end(), outside);
  if (found == ids.end()) return {};
  return bad_request(
      std::string(param),
      fmt::format("'{}': expected token ids below {}, got {}", param, limits.vocab_size, *found),
      "out_of_range");
}

// A prompt that an answer follows leaves room for a token of it.
int most_before_answer(const EngineLimits& limits) {
  return limits.max_model_len - 1;
}

ApiResult<std::vector<int>> token_ids_of(const ServedModel& model, std::string_view text,
                                         EncodeOptions options, std::string_view param) {
  auto ids = model.tokenizer->encode(text, options);
  if (!ids.ok()) return api_error(ids.status(), std::string(param));
  return *std::move(ids);
}

// Refuses a text with far more tokens than `most` by its beginning.
ApiResult<std::vector<int>> token_ids_if_near(const ServedModel& model, std::string_view text,
                                              int most, EncodeOptions options,
                                              std::string_view param) {
  const EngineLimits& limits = model.engine->limits();
  const auto exceeds = surely_exceeds(*model.tokenizer, text, most);
  if (!exceeds.ok()) return api_error(exceeds.status(), std::string(param));
  if (*exceeds) return too_long(limits.max_model_len, param, fmt::format("at least {}", most + 1));
  return token_ids_of(model, text, options, param);
}

ApiResult<EncodedPrompt> encode_text(const ServedModel& model, std::string text,
                                     bool add_special_tokens, std::string_view param) {
  const EngineLimits& limits = model.engine->limits();
  const int most = most_before_answer(limits);
  auto ids =
      token_ids_if_near(model, text, most, {.add_special_tokens = add_special_tokens}, param);
  if (!ids.ok()) return std::move(ids).error();
  if (auto error = check_token_ids(limits, *ids, most, param)) return std::move(*error);
  return EncodedPrompt{*std::move(ids), std::move(text)};
}

// Leaves `most` tokens. Those that the tokenizer has put around the `bare` ones of the text stay,
// where there is room for one of the text's.
void cut(std::vector<int>& ids, const std::vector<int>& bare, int most, bool keeps_end) {
  const auto found = std::search(ids.begin(), ids.end(), bare.begin(), bare.end());
  std::ptrdiff_t num_before = found - ids.begin();
  std::ptrdiff_t num_behind = ids.end() - found - std::ssize(bare);
  if (found == ids.end() || num_before + num_behind >= most) num_before = num_behind = 0;
  const std::ptrdiff_t num_kept = most - num_before - num_behind;
  if (keeps_end) {
    ids.erase(ids.begin() + num_before, ids.end() - num_behind - num_kept);
  } else {
    ids.erase(ids.begin() + num_before + num_kept, ids.end() - num_behind);
  }
}

ApiResult<std::vector<int>> encode_cut(const ServedModel& model, std::string_view text,
                                       const InputEncoding& encoding, std::string_view param) {
  auto ids = tokenize_text(model, text, encoding.add_special_tokens, param);
  if (!ids.ok() || std::ssize(*ids) <= *encoding.cut_to) return ids;
  auto bare = tokenize_text(model, text, /*add_special_tokens=*/false, param);
  if (!bare.ok()) return bare;
  cut(*ids, *bare, *encoding.cut_to, encoding.keeps_end);
  return ids;
}

ApiResult<std::vector<int>> encode_input(const ServedModel& model, const PromptInput& input,
                                         const InputEncoding& encoding, std::string_view param) {
  const EngineLimits& limits = model.engine->limits();
  std::vector<int> ids;
  if (const auto* given = std::get_if<std::string>(&input)) {
    if (!model.tokenizer)
      return bad_request(std::string(param), model.no_tokenizer.message(), "no_tokenizer");
    const std::string text = std::string(encoding.prompt) + *given;
    auto encoded =
        encoding.cut_to
            ? encode_cut(model, text, encoding, param)
            : token_ids_if_near(model, text, limits.max_model_len,
                                {.add_special_tokens = encoding.add_special_tokens}, param);
    if (!encoded.ok()) return encoded;
    ids = *std::move(encoded);
  } else {
    ids = std::get<std::vector<int>>(input);
    if (encoding.cut_to && std::ssize(ids) > *encoding.cut_to)
      cut(ids, ids, *encoding.cut_to, encoding.keeps_end);
  }
  if (auto error = check_token_ids(limits, ids, limits.max_model_len, param))
    return std::move(*error);
  const int most = most_embedded(model);
  if (std::ssize(ids) > most) return too_long(most, param, std::to_string(ids.size()));
  return ids;
}

// As the tokenizer puts two texts together.
ApiResult<std::vector<int>> encode_joined_pair(const ServedModel& model, const TextPair& pair,
                                               std::optional<int> most, std::string_view param) {
  const EngineLimits& limits = model.engine->limits();
  const auto parts = model.tokenizer->pair_parts();
  if (!parts.ok()) return api_error(parts.status(), std::string(param));
  const auto encode = [&](std::string_view text) {
    constexpr EncodeOptions kBare = {.add_special_tokens = false};
    return most ? tokenize_text(model, text, kBare.add_special_tokens, param)
                : token_ids_if_near(model, text, limits.max_model_len, kBare, param);
  };
  auto query = encode(pair.query);
  if (!query.ok()) return query;
  auto document = encode(pair.document);
  if (!document.ok()) return document;
  const std::ptrdiff_t num_others = std::ssize(parts->before) + std::ssize(*query) +
                                    std::ssize(parts->between) + std::ssize(parts->after);
  if (most && num_others + std::ssize(*document) > *most)
    document->resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(*most - num_others, 0)));
  std::vector<int> ids = parts->before;
  for (const std::vector<int>& part : {*query, parts->between, *document, parts->after})
    ids.insert(ids.end(), part.begin(), part.end());
  if (auto error = check_token_ids(limits, ids, most.value_or(limits.max_model_len), param))
    return std::move(*error);
  return ids;
}

}  // namespace

ApiResult<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                       bool add_special_tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return encode_text(model, *text, add_special_tokens, "prompt");
  }
  const auto& ids = std::get<std::vector<int>>(prompt);
  const EngineLimits& limits = model.engine->limits();
  if (auto error = check_token_ids(limits, ids, most_before_answer(limits), "prompt"))
    return std::move(*error);
  auto text = model.tokenizer->decode(ids, /*skip_special_tokens=*/false);
  // Ids that only the model has, in its padding, have no text.
  return EncodedPrompt{ids, text.ok() ? *std::move(text) : std::string()};
}

ApiResult<std::vector<int>> tokens_before_text(const ServedModel& model) {
  auto around = token_ids_of(model, "", {.add_special_tokens = true}, "prompt");
  if (!around.ok()) return std::move(around).error();
  const bool has_bos = !around->empty() && around->front() == model.tokenizer->bos_token_id();
  around->resize(has_bos ? 1 : 0);
  return around;
}

std::optional<ApiError> check_fill_in(const ServedModel& model, std::string_view param) {
  if (model.fill_in) return {};
  return bad_request(
      std::string(param),
      fmt::format("'{}': this model has no tokens for a gap between two texts", param),
      "no_fill_in");
}

ApiResult<EncodedPrompt> encode_fill_in(const ServedModel& model, std::string_view prefix,
                                        std::string_view suffix, bool add_special_tokens) {
  if (auto error = check_fill_in(model, "suffix")) return std::move(*error);
  const int most = most_before_answer(model.engine->limits());
  auto before = token_ids_if_near(model, prefix, most, kAsText, "prompt");
  if (!before.ok()) return std::move(before).error();
  auto behind = token_ids_if_near(model, suffix, most, kAsText, "suffix");
  if (!behind.ok()) return std::move(behind).error();
  auto begin = tokens_before_text(model);
  if (!begin.ok()) return std::move(begin).error();
  if (!add_special_tokens) begin->clear();
  EncodedPrompt encoded = {.token_ids = fill_in_prompt(*model.fill_in, *begin, *before, *behind),
                           .text = std::string(prefix)};
  if (auto error = check_token_ids(model.engine->limits(), encoded.token_ids, most, "prompt"))
    return std::move(*error);
  return encoded;
}

int most_embedded(const ServedModel& model) {
  const int max_model_len = model.engine->limits().max_model_len;
  return std::min(max_model_len, model.embedding_format.max_tokens.value_or(max_model_len));
}

ApiResult<std::string_view> find_prompt(const ServedModel& model,
                                        const std::optional<std::string>& name) {
  const EmbeddingFormat& format = model.embedding_format;
  if (!name) return std::string_view(format.default_prompt);
  const auto found = format.prompts.find(*name);
  if (found != format.prompts.end()) return std::string_view(found->second);
  if (format.prompts.empty())
    return bad_request("prompt_name", "'prompt_name': this model has no prompts", "out_of_range");
  std::vector<std::string_view> names;
  for (const auto& [each, text] : format.prompts) names.push_back(each);
  return bad_request(
      "prompt_name",
      fmt::format("'prompt_name': expected {}, got {}", fmt::join(names, " or "), *name),
      "out_of_range");
}

ApiResult<std::vector<std::vector<int>>> encode_inputs(const ServedModel& model,
                                                       const std::vector<PromptInput>& inputs,
                                                       const InputEncoding& encoding,
                                                       std::string_view param) {
  std::vector<std::vector<int>> prompts;
  prompts.reserve(inputs.size());
  for (const PromptInput& input : inputs) {
    auto ids = encode_input(model, input, encoding, param);
    if (!ids.ok()) return std::move(ids).error();
    prompts.push_back(*std::move(ids));
  }
  return prompts;
}

ApiResult<std::optional<int>> settle_cut(const ServedModel& model, std::optional<int> asked) {
  const int max_model_len = model.engine->limits().max_model_len;
  if (asked == -1) return std::optional(max_model_len);
  if (!asked || *asked <= max_model_len) return asked;
  return bad_request("truncate_prompt_tokens",
                     fmt::format("'truncate_prompt_tokens': expected at most {}, the context's "
                                 "length, got {}",
                                 max_model_len, *asked),
                     "out_of_range");
}

ApiResult<std::vector<int>> encode_pair(const ServedModel& model, const TextPair& pair,
                                        std::optional<int> most, std::string_view param) {
  if (!model.tokenizer)
    return bad_request(std::string(param), model.no_tokenizer.message(), "no_tokenizer");
  const std::string& prompt = model.score_format->prompt;
  if (prompt.empty()) return encode_joined_pair(model, pair, most, param);
  if (most) {
    return bad_request("truncate_prompt_tokens",
                       "'truncate_prompt_tokens': this model has a prompt of its own for pairs, "
                       "which can't be cut",
                       "unsupported_parameter");
  }
  const std::string text = scored_prompt(prompt, pair.query, pair.document);
  const EngineLimits& limits = model.engine->limits();
  auto ids =
      token_ids_if_near(model, text, limits.max_model_len, {.add_special_tokens = true}, param);
  if (!ids.ok()) return ids;
  if (auto error = check_token_ids(limits, *ids, limits.max_model_len, param))
    return std::move(*error);
  return ids;
}

ApiResult<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                          bool add_special_tokens, std::string_view param) {
  if (text.size() > kMaxTokenizedBytes) {
    return bad_request(std::string(param), fmt::format("expected at most {} bytes of text, got {}",
                                                       kMaxTokenizedBytes, text.size()));
  }
  const auto longest_piece = model.tokenizer->longest_piece(text);
  if (!longest_piece.ok()) return api_error(longest_piece.status(), std::string(param));
  if (*longest_piece > kMaxTokenizedPiece) {
    return bad_request(
        std::string(param),
        fmt::format("expected at most {} bytes of text that the tokenizer can't cut between words, "
                    "got {}",
                    kMaxTokenizedPiece, *longest_piece));
  }
  return token_ids_of(model, text, {.add_special_tokens = add_special_tokens}, param);
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
  if (!prompt.suffix.empty())
    return encode_fill_in(model, prompt.raw_text.value_or(""), prompt.suffix,
                          /*add_special_tokens=*/true);
  if (prompt.raw_text)
    return encode_text(model, *prompt.raw_text, /*add_special_tokens=*/true, "prompt");
  auto rendered = render_chat(model, prompt);
  if (!rendered.ok()) return std::move(rendered).error();
  if (!prompt.is_for_counting)
    return encode_text(model, *std::move(rendered), prompt.add_special_tokens, "messages");
  auto ids = tokenize_text(model, *rendered, prompt.add_special_tokens, "messages");
  if (!ids.ok()) return std::move(ids).error();
  return EncodedPrompt{*std::move(ids), *std::move(rendered)};
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
