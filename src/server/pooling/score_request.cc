#include "server/pooling/score_request.h"

#include <fmt/format.h>

#include "core/json.h"
#include "server/fields/generation_fields.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {
namespace {

constexpr std::string_view kFromVllm = "vLLM", kFromJina = "Jina";
constexpr FieldSize kListSize = {
    .max_chars = kMaxTextChars, .min_chars = 1, .max_items = kMaxScoredTexts, .min_items = 1};

std::string_view text_or_texts_schema() {
  static const std::string schema = fmt::format(
      R"({{"anyOf": [{{"type": "string", "minLength": 1, "maxLength": {0}}},
          {{"type": "array", "minItems": 1, "maxItems": {1},
            "items": {{"type": "string", "minLength": 1, "maxLength": {0}}}}}]}})",
      kMaxTextChars, kMaxScoredTexts);
  return schema;
}

std::string_view documents_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "minItems": 1, "maxItems": {1}, "items": {{"anyOf": [
          {{"type": "string", "minLength": 1, "maxLength": {0}}},
          {{"type": "object", "required": ["text"],
            "properties": {{"text": {{"type": "string", "minLength": 1, "maxLength": {0}}}}}}}]}}}})",
      kMaxTextChars, kMaxScoredTexts);
  return schema;
}

std::optional<ApiError> read_texts_to_score(std::string_view name, const RequestJson& value,
                                            std::vector<std::string>& texts) {
  if (!value.is_string() && !value.is_array())
    return wrong_type(name, "a string or a list of strings", value);
  texts.clear();
  return read_strings({.name = name, .size = kListSize},
                      value.is_array() ? value : RequestJson::array({value}), texts);
}

// Reads documents. They may be objects with other members beside their text, which are ignored.
std::optional<ApiError> read_documents(std::string_view name, const RequestJson& value,
                                       std::vector<std::string>& documents) {
  if (!value.is_array()) return wrong_type(name, "a list of documents", value);
  RequestJson texts = RequestJson::array();
  for (const RequestJson& document : value)
    texts.push_back(document.is_object() ? value_of(document, "text") : document);
  documents.clear();
  return read_strings({.name = name, .size = kListSize}, texts, documents);
}

Field texts_field(std::string_view name, std::vector<std::string>& texts,
                  std::string_view description) {
  return {.name = name,
          .target = CustomField{[&texts](std::string_view sent, const RequestJson& value) {
                                  return read_texts_to_score(sent, value, texts);
                                },
                                text_or_texts_schema()},
          .description = description,
          .from = kFromVllm,
          .required = true};
}

// Adds the fields of both endpoints, and other servers' fields that have no effect on scores here.
void add_common_fields(ScoredTexts& common, std::vector<Field>& table) {
  table.push_back(model_field(common.model));
  table.push_back(truncation_field(
      common.truncate_prompt_tokens,
      "Leaves the first tokens of a document, as many as have room in a pair of that many; -1: as "
      "many as the context has."));
  table.push_back(priority_field(common.priority));
  table.push_back(cache_salt_field(common.cache_salt));
  add_names_of_requests(table);
  constexpr std::string_view kNone = R"([false, [], {}, ""])";
  table.push_back({.name = "use_activation", .target = RefusedField{"[true]"}, .from = kFromVllm});
  table.push_back({.name = "activation", .target = RefusedField{"[true]"}, .from = kFromVllm});
  table.push_back(
      {.name = "mm_processor_kwargs", .target = RefusedField{kNone}, .from = kFromVllm});
  table.push_back({.name = "chat_template", .target = RefusedField{kNone}, .from = kFromVllm});
}

nlohmann::json with_truncation_rule(nlohmann::json schema) {
  add_truncation_rule(schema);
  return schema;
}

}  // namespace

std::vector<Field> score_field_table(ScoreRequest& request) {
  std::vector<Field> table = {
      texts_field("text_1", request.firsts, "A text, such as a query, or a list of them."),
      texts_field("text_2", request.seconds,
                  "A text, such as a document, or a list of them: one for each of text_1, or any "
                  "number for one text.")};
  add_common_fields(request.common, table);
  return table;
}

std::vector<Field> rerank_field_table(RerankRequest& request) {
  std::vector<Field> table = {
      {.name = "query",
       .target = &request.query,
       .size = {.max_chars = kMaxTextChars},
       .description = "What the documents are scored by.",
       .from = kFromJina,
       .required = true},
      {.name = "documents",
       .target = CustomField{[&request](std::string_view name, const RequestJson& value) {
                               return read_documents(name, value, request.documents);
                             },
                             documents_schema()},
       .description = "Texts, or objects with a text each.",
       .from = kFromJina,
       .required = true},
      {.name = "top_n",
       .target = &request.top_n,
       .range = {.minimum = 0},
       .description = "How many of the best documents the answer has; 0: all of them.",
       .from = kFromJina},
      {.name = "return_documents",
       .target = &request.return_documents,
       .description = "Whether results have their document's text beside its index.",
       .from = kFromJina}};
  add_common_fields(request.common, table);
  return table;
}

nlohmann::json score_request_schema() {
  ScoreRequest request;
  return with_truncation_rule(fields_schema(score_field_table(request)));
}

nlohmann::json rerank_request_schema() {
  RerankRequest request;
  return with_truncation_rule(fields_schema(rerank_field_table(request)));
}

ApiResult<ScoreRequest> read_score_request(const std::string& body,
                                           std::vector<std::string>& unknown_names) {
  ScoreRequest request;
  if (auto error = read_body_fields(body, score_field_table(request), unknown_names))
    return std::move(*error);
  if (auto error = check_truncation(request.common.truncate_prompt_tokens))
    return std::move(*error);
  if (request.firsts.size() != 1 && request.firsts.size() != request.seconds.size()) {
    return bad_request("text_2",
                       fmt::format("'text_2': expected {} texts, one for each of text_1, got {}",
                                   request.firsts.size(), request.seconds.size()),
                       "unequal_lists");
  }
  return request;
}

ApiResult<RerankRequest> read_rerank_request(const std::string& body,
                                             std::vector<std::string>& unknown_names) {
  RerankRequest request;
  if (auto error = read_body_fields(body, rerank_field_table(request), unknown_names))
    return std::move(*error);
  if (auto error = check_truncation(request.common.truncate_prompt_tokens))
    return std::move(*error);
  return request;
}

}  // namespace pagoda
