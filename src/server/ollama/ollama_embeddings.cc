#include "server/ollama/ollama_embeddings.h"

#include <fmt/format.h>

#include <iterator>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/fields/generation_fields.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_answers.h"
#include "server/pooling/embedding_answer.h"
#include "server/pooling/embedding_request.h"
#include "serving/pooling/pooling_prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr std::string_view kFromOllama = "Ollama";

// A request to /api/embed or /api/embeddings.
struct EmbedRequest {
  std::string model;
  std::vector<std::string> texts;
  bool truncates = true;
  std::optional<int> dimensions;
};

std::string_view texts_schema() {
  static const std::string schema = fmt::format(
      R"({{"anyOf": [{{"type": "string", "maxLength": {0}}}, {{"type": "array", "maxItems": {1},
          "items": {{"type": "string", "minLength": 1, "maxLength": {0}}}}}]}})",
      kMaxTextChars, kMaxInputs);
  return schema;
}

std::optional<ApiError> read_texts(std::string_view name, const RequestJson& value,
                                   std::vector<std::string>& texts) {
  if (!value.is_string() && !value.is_array())
    return wrong_type(name, "a string or a list of strings", value);
  const Field field = {
      .name = name, .size = {.max_chars = kMaxTextChars, .min_chars = 1, .max_items = kMaxInputs}};
  if (value.is_array()) return read_strings(field, value, texts);
  texts.clear();
  // Clients that only want the model to be loaded send an empty text.
  if (value.get_ref<const std::string&>().empty()) return {};
  return read_strings(field, RequestJson::array({value}), texts);
}

// Returns the fields that both endpoints have. How Ollama loads, keeps and samples a model has no
// effect on embeddings.
std::vector<Field> loading_field_table(EmbedRequest& request) {
  return {model_field(request.model),
          {.name = "options", .target = IgnoredField{}, .from = kFromOllama},
          {.name = "keep_alive", .target = IgnoredField{}, .from = kFromOllama}};
}

std::vector<Field> embed_field_table(EmbedRequest& request) {
  std::vector<Field> table = loading_field_table(request);
  table.push_back(
      {.name = "input",
       .target = CustomField{[&request](std::string_view name, const RequestJson& value) {
                               return read_texts(name, value, request.texts);
                             },
                             texts_schema()},
       .description = "A text, or a list of them.",
       .from = kFromOllama});
  table.push_back({.name = "truncate",
                   .target = &request.truncates,
                   .description = "Leaves as many of a text's first tokens as the context has; "
                                  "otherwise a longer one is an error.",
                   .from = kFromOllama});
  table.push_back(dimensions_field(request.dimensions, kFromOllama));
  return table;
}

// Returns the fields of a request with one text. read_one_text_request() moves `prompt` to
// request.texts.
std::vector<Field> one_text_field_table(EmbedRequest& request, std::string& prompt) {
  std::vector<Field> table = loading_field_table(request);
  table.push_back({.name = "prompt",
                   .target = &prompt,
                   .size = {.max_chars = kMaxTextChars},
                   .from = kFromOllama});
  return table;
}

ApiResult<EmbedRequest> read_embed_request(std::string_view body,
                                           std::vector<std::string>& unknown_names) {
  EmbedRequest request;
  if (auto error = read_body_fields(body, embed_field_table(request), unknown_names))
    return std::move(*error);
  return request;
}

ApiResult<EmbedRequest> read_one_text_request(std::string_view body,
                                              std::vector<std::string>& unknown_names) {
  EmbedRequest request;
  std::string prompt;
  if (auto error = read_body_fields(body, one_text_field_table(request, prompt), unknown_names))
    return std::move(*error);
  if (!prompt.empty()) request.texts.push_back(std::move(prompt));
  return request;
}

// Returns the reply with the embeddings of texts. `param`: the field that held them.
HttpReply embed(ApiService& service, const HttpRequest& http_request, EmbedRequest request,
                std::string_view param, EmbeddingLayout layout, const Wake& wake) {
  const ServedModel& model = service.model;
  InputEncoding encoding = {.prompt = model.embedding_format.default_prompt, .keeps_end = false};
  if (request.truncates) encoding.cut_to = most_embedded(model);
  const std::vector<PromptInput> inputs(std::make_move_iterator(request.texts.begin()),
                                        std::make_move_iterator(request.texts.end()));
  auto prompts = encode_inputs(model, inputs, encoding, param);
  if (!prompts.ok()) return {error_response(api_error(prompts.status())), {}};
  EmbeddingBatchRequest batch = {.prompts = *std::move(prompts),
                                 .dimensions = request.dimensions,
                                 .cache_owner = http_request.client};
  return start_embeddings(
      service,
      {.batch = std::move(batch), .origin = http_request.origin(), .layout = std::move(layout)},
      wake);
}

// Checks everything that was read except the texts. Replaces the model by its name in answers.
ApiResult<EmbedRequest> checked_request(ApiService& service, ApiResult<EmbedRequest> request) {
  if (!request.ok()) return request;
  drop_tag(service, request->model);
  if (auto error = check_embedding(service, request->model, request->dimensions))
    return std::move(*error);
  request->model = answered_name(service, request->model);
  return request;
}

}  // namespace

HttpReply handle_ollama_embed(ApiService& service, const HttpRequest& http_request,
                              const Wake& wake) {
  auto request =
      checked_request(service, read_logged(service, read_embed_request, http_request.body));
  if (!request.ok()) return {error_response(request.error()), {}};
  const std::string name = json_text(json(request->model));
  const auto tail = [arrival = http_request.arrival](int num_tokens) {
    return fmt::format(R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                       nanoseconds_between(arrival, Clock::system().now()), num_tokens);
  };
  std::string head = fmt::format(R"({{"model":{},"embeddings":[)", name);
  if (request->texts.empty()) return {HttpResponse{.body = head + tail(0)}, {}};
  EmbeddingLayout layout = {.head = std::move(head), .tail = [tail](const EmbeddingBatch& batch) {
                              return tail(batch.num_prompt_tokens());
                            }};
  return embed(service, http_request, *std::move(request), "input", std::move(layout), wake);
}

HttpReply handle_ollama_embeddings(ApiService& service, const HttpRequest& http_request,
                                   const Wake& wake) {
  auto request =
      checked_request(service, read_logged(service, read_one_text_request, http_request.body));
  if (!request.ok()) return {error_response(request.error()), {}};
  if (request->texts.empty()) return {json_response({{"embedding", json::array()}}), {}};
  EmbeddingLayout layout = {.head = R"({"embedding":)",
                            .tail = [](const EmbeddingBatch&) { return "}"; }};
  return embed(service, http_request, *std::move(request), "prompt", std::move(layout), wake);
}

json ollama_embed_schema() {
  EmbedRequest request;
  return fields_schema(embed_field_table(request));
}

json ollama_embedding_schema() {
  EmbedRequest request;
  std::string prompt;
  return fields_schema(one_text_field_table(request, prompt));
}

}  // namespace pagoda
