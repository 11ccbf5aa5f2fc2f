#include "server/information/tokenizer_endpoints.h"

#include <fmt/ranges.h>

#include "core/json.h"
#include "core/utf8.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/chat/chat_request.h"
#include "server/information/tokenize_request.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

json text_or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

ApiResult<std::vector<int>> tokens_of(const ServedModel& model, TokenizeRequest& request) {
  std::string text;
  std::string_view param = "prompt";
  if (request.prompt) {
    text = *request.prompt;
  } else {
    param = "messages";
    auto rendered = render_chat(model, std::move(request.chat));
    if (!rendered.ok()) return api_error(rendered.status());
    text = *std::move(rendered);
  }
  auto ids = tokenize_text(model, text,
                           request.add_special_tokens.value_or(request.prompt.has_value()), param);
  if (!ids.ok()) return api_error(ids.status());
  return *std::move(ids);
}

// Returns the tokens as llama.cpp writes them with their texts. A token whose bytes are not UTF-8 has
// a list of its bytes instead.
std::string pieces_json(const Tokenizer& tokenizer, const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) {
    const auto decoded = tokenizer.token_bytes(id);
    const std::string bytes = decoded.ok() ? *decoded : std::string();
    const bool is_text = find_invalid_utf8(bytes) == std::string_view::npos;
    const json piece =
        is_text ? json(bytes) : json(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    text +=
        fmt::format(R"({}{{"id":{},"piece":{}}})", text.empty() ? "" : ",", id, json_text(piece));
  }
  return text;
}

// Returns the answer as text, written piece by piece. As JSON values, the tokens of a long text
// would take a hundred bytes each.
std::string tokenize_json(const ServedModel& model, const std::vector<int>& ids,
                          const TokenizeRequest& request) {
  std::string text = fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}],"token_strs":)",
                                 ids.size(), model.engine->limits().max_model_len,
                                 request.with_pieces ? pieces_json(*model.tokenizer, ids)
                                                     : fmt::format("{}", fmt::join(ids, ",")));
  if (!request.return_token_strs) return text + "null}";
  char before = '[';
  for (const int id : ids) {
    const auto token = model.tokenizer->id_to_token(id);
    text += before + json_text(json(token.ok() ? *token : std::string()));
    before = ',';
  }
  return text + (ids.empty() ? "[]}" : "]}");
}

// Returns the answer with a text. It moves the text, because a list of pairs would copy it twice.
HttpResponse prompt_response(std::string text) {
  json answer = json::object();
  answer["prompt"] = std::move(text);
  return json_response(answer);
}

}  // namespace

HttpResponse tokenize_response(ApiService& service, const HttpRequest& http_request) {
  auto read = read_logged(service, read_tokenize_request, http_request.body);
  if (!read.ok()) return error_response(read.error());
  auto& request = *read;
  if (auto error = check_model_name(service, request.model)) return error_response(*error);
  auto tokenized = tokens_of(service.model, request);
  if (!tokenized.ok()) return error_response(tokenized.error());
  const auto& ids = *tokenized;
  return {.body = tokenize_json(service.model, ids, request)};
}

HttpResponse detokenize_response(ApiService& service, const HttpRequest& http_request) {
  auto read = read_logged(service, read_detokenize_request, http_request.body);
  if (!read.ok()) return error_response(read.error());
  const auto& request = *read;
  if (auto error = check_model_name(service, request.model)) return error_response(*error);
  auto text = service.model.tokenizer->decode(request.tokens, /*skip_special_tokens=*/false);
  if (!text.ok()) return error_response(api_error(text.status(), "tokens"));
  return prompt_response(*std::move(text));
}

HttpResponse tokenizer_info_response(const ApiService& service) {
  const ServedModel& model = service.model;
  const std::string chat_template = model.chat_template ? model.chat_template->text() : "";
  return json_response({{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"vocab_size", model.tokenizer->vocab_size()},
                        {"model_max_length", model.engine->limits().max_model_len},
                        {"bos_token", text_or_null(model.tokenizer->bos_token())},
                        {"eos_token", text_or_null(model.tokenizer->eos_token())},
                        {"chat_template", text_or_null(chat_template)}});
}

HttpResponse apply_template_response(ApiService& service, const HttpRequest& http_request) {
  auto read = read_logged(service, read_chat_request, http_request.body);
  if (!read.ok()) return error_response(read.error());
  if (auto error = check_model_name(service, read->generation.model)) return error_response(*error);
  auto text = render_chat(service.model, std::move(read->prompt));
  if (!text.ok()) return error_response(api_error(text.status()));
  return prompt_response(*std::move(text));
}

}  // namespace pagoda
