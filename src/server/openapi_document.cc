#include "server/openapi_document.h"

#include "core/json.h"
#include "core/version.h"
#include "server/anthropic/messages_request.h"
#include "server/chat/chat_request.h"
#include "server/endpoints.h"
#include "server/http/access.h"
#include "server/information/tokenize_request.h"
#include "server/llama_cpp/infill_request.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_embeddings.h"
#include "server/openai/completion_request.h"
#include "server/pooling/embedding_request.h"
#include "server/pooling/score_request.h"
#include "server/responses/response_request.h"

namespace pagoda {
namespace {

using nlohmann::json;

json json_content(json schema) {
  return {{"application/json", {{"schema", std::move(schema)}}}};
}

json reference(std::string_view name) {
  return {{"$ref", fmt::format("#/components/schemas/{}", name)}};
}

json failure(const char* description, const char* header = nullptr) {
  json response = {{"description", description}, {"content", json_content(reference("Error"))}};
  if (header != nullptr) response["headers"][header] = {{"schema", {{"type", "string"}}}};
  return response;
}

json responses(std::string_view description, json content) {
  return {{"200", {{"description", description}, {"content", std::move(content)}}},
          {"401", failure("The API key is missing or wrong", "WWW-Authenticate")},
          {"405", failure("The path has no such method", "Allow")},
          {"429", failure("The queue is full", "Retry-After")},
          {"503", failure("The server is full, or ends", "Retry-After")},
          {"4XX", failure("What is wrong with the request")},
          {"5XX", failure("What went wrong")}};
}

json answer_content(const Endpoint& endpoint) {
  const std::string type(endpoint.answer_type);
  if (type != "application/json") return {{type, {{"schema", {{"type", "string"}}}}}};
  if (endpoint.answer_schema.empty()) return json_content({{"type", "object"}});
  json content = json_content(reference(endpoint.answer_schema));
  if (endpoint.generates && !endpoint.is_whole) {
    content["text/event-stream"] = {
        {"schema", {{"description", "Chunks as JSON, one an event's data, and [DONE]."}}}};
    content["application/x-ndjson"] = {
        {"schema", {{"description", "Of Ollama's endpoints: chunks as JSON, one a line."}}}};
  }
  return content;
}

// The names that are known, of a parameter of the path: the models'.
json parameter_schema(const Endpoint& endpoint, const ApiService& service) {
  json schema = {{"type", "string"}};
  if (endpoint.parameter() == "model") schema["enum"] = service.model_names;
  return schema;
}

json operation_json(const Endpoint& endpoint, const ApiService& service, bool needs_key) {
  json entry = {{"operationId", endpoint.operation_id},
                {"summary", endpoint.summary},
                {"responses", responses(endpoint.summary, answer_content(endpoint))}};
  if (!endpoint.request_schema.empty())
    entry["requestBody"] = {{"required", true},
                            {"content", json_content(reference(endpoint.request_schema))}};
  if (needs_key && needs_api_key(endpoint.path))
    entry["security"] = json::array({{{"bearer", json::array()}}});
  if (!endpoint.parameter().empty()) {
    entry["parameters"] = json::array({{{"name", endpoint.parameter()},
                                        {"in", "path"},
                                        {"required", true},
                                        {"schema", parameter_schema(endpoint, service)}}});
  }
  json operations = {{endpoint.tell == nullptr ? "post" : "get", entry}};
  if (endpoint.erase == nullptr) return operations;
  entry["operationId"] = fmt::format("{}Deletion", endpoint.operation_id);
  entry["responses"] = responses("What was deleted", json_content({{"type", "object"}}));
  operations["delete"] = std::move(entry);
  return operations;
}

json paths(const ApiService& service, bool needs_key) {
  json all = json::object();
  for (const Endpoint& endpoint : endpoints())
    all[std::string(endpoint.path)] = operation_json(endpoint, service, needs_key);
  return all;
}

// An object with these properties, all of them always there.
json object_schema(json properties) {
  json names = json::array();
  for (const auto& [name, schema] : properties.items()) names.push_back(name);
  return {{"type", "object"}, {"required", names}, {"properties", std::move(properties)}};
}

json embedding_answer_schemas() {
  const json text = {{"type", "string"}};
  const json count = {{"type", "integer"}, {"minimum", 0}};
  const json numbers = {{"type", "array"}, {"items", {{"type", "number"}}}};
  const json embedding = object_schema({{"object", {{"const", "embedding"}}},
                                        {"index", count},
                                        {"embedding", {{"anyOf", {numbers, text}}}}});
  const json usage = object_schema({{"prompt_tokens", count}, {"total_tokens", count}});
  const json number = {{"type", "number"}};
  const json score =
      object_schema({{"index", count}, {"object", {{"const", "score"}}}, {"score", number}});
  // The documents are there unless return_documents is false.
  json ranked = object_schema({{"index", count}, {"relevance_score", number}});
  ranked["properties"]["document"] = object_schema({{"text", text}});
  const auto list_of = [](const json& items) { return json{{"type", "array"}, {"items", items}}; };
  return {
      {"EmbeddingList", object_schema({{"object", {{"const", "list"}}},
                                       {"data", list_of(embedding)},
                                       {"model", text},
                                       {"usage", usage}})},
      {"RankedDocuments",
       object_schema(
           {{"id", text}, {"model", text}, {"results", list_of(ranked)}, {"usage", usage}})},
      {"ScoreList", object_schema({{"id", text},
                                   {"object", {{"const", "list"}}},
                                   {"created", count},
                                   {"model", text},
                                   {"data", list_of(score)},
                                   {"usage", usage}})},
      {"OllamaEmbedding", object_schema({{"embedding", numbers}})},
      {"OllamaEmbeddings", object_schema({{"model", text},
                                          {"embeddings", {{"type", "array"}, {"items", numbers}}},
                                          {"total_duration", count},
                                          {"load_duration", count},
                                          {"prompt_eval_count", count}})}};
}

// Returns what answers of other APIs than OpenAI's look like.
json foreign_answer_schemas() {
  const json text = {{"type", "string"}};
  const json count = {{"type", "integer"}, {"minimum", 0}};
  return {
      {"Message", object_schema({{"id", text},
                                 {"type", {{"const", "message"}}},
                                 {"role", {{"const", "assistant"}}},
                                 {"model", text},
                                 {"content", {{"type", "array"}}},
                                 {"stop_reason", text},
                                 {"usage", {{"type", "object"}}}})},
      {"MessageTokens", object_schema({{"input_tokens", count}})},
      {"Infill",
       {{"type", "object"}, {"properties", {{"content", text}, {"stop", {{"type", "boolean"}}}}}}},
      {"OllamaAnswer",
       object_schema({{"model", text}, {"created_at", text}, {"done", {{"type", "boolean"}}}})}};
}

json answer_schemas() {
  const json text = {{"type", "string"}};
  const json text_or_null = {{"type", {"string", "null"}}};
  const json count = {{"type", "integer"}, {"minimum", 0}};
  const json counts = {{"type", "array"}, {"items", count}};
  const json error = object_schema(
      {{"message", text}, {"type", text}, {"param", text_or_null}, {"code", text_or_null}});
  const json model = object_schema(
      {{"id", text}, {"object", {{"const", "model"}}}, {"created", count}, {"owned_by", text}});
  const json usage = object_schema(
      {{"prompt_tokens", count}, {"completion_tokens", count}, {"total_tokens", count}});
  const json logprobs = {{"type", {"object", "null"}}};
  const json reason = {{"enum", {"stop", "length", "tool_calls"}}};
  const json message =
      object_schema({{"role", {{"const", "assistant"}}}, {"content", text_or_null}});
  const auto answer = [&](const char* object, json choice) {
    choice["index"] = count;
    choice["logprobs"] = logprobs;
    choice["finish_reason"] = reason;
    return object_schema(
        {{"id", text},
         {"object", {{"const", object}}},
         {"created", count},
         {"model", text},
         {"choices", {{"type", "array"}, {"items", object_schema(std::move(choice))}}},
         {"usage", usage}});
  };
  return {{"Error", object_schema({{"error", error}})},
          {"Health", object_schema({{"status", {{"const", "ok"}}}})},
          {"Version", object_schema({{"version", text}})},
          {"Load", object_schema({{"server_load", count}})},
          {"CacheEvents",
           object_schema(
               {{"root", text},
                {"block_size", count},
                {"is_whole", {{"type", "boolean"}}},
                {"events",
                 {{"type", "array"}, {"items", object_schema({{"type", text}, {"digest", text}})}}},
                {"next", count}})},
          {"SlotList", {{"type", "array"}, {"items", {{"type", "object"}}}}},
          {"Model", model},
          {"ModelList", object_schema({{"object", {{"const", "list"}}},
                                       {"data", {{"type", "array"}, {"items", model}}}})},
          {"Completion", answer("text_completion", {{"text", text}})},
          {"Response", object_schema({{"id", text},
                                      {"object", {{"const", "response"}}},
                                      {"created_at", count},
                                      {"model", text},
                                      {"status", {{"enum", {"completed", "incomplete"}}}},
                                      {"output", {{"type", "array"}}},
                                      {"usage", {{"type", "object"}}}})},
          {"ChatCompletion", answer("chat.completion", {{"message", message}})},
          {"Tokenized", object_schema({{"count", count},
                                       {"max_model_len", count},
                                       {"tokens", counts},
                                       {"token_strs", {{"type", {"array", "null"}}}}})},
          {"Text", object_schema({{"prompt", text}})}};
}

// Numbers from 0 to most, as JSON writes them.
std::string pattern_up_to(int most) {
  const std::string digits = std::to_string(most);
  const std::size_t length = digits.size();
  std::string pattern = "0";
  if (length > 1) pattern += fmt::format("|[1-9][0-9]{{0,{}}}", length - 2);
  for (std::size_t i = 0; i < length; ++i) {
    const char lowest = i == 0 ? '1' : '0';
    if (digits[i] <= lowest) continue;
    pattern += fmt::format("|{}[{}-{}]", digits.substr(0, i), lowest, digits[i] - 1 - '0');
    if (i + 1 < length) pattern += fmt::format("[0-9]{{{}}}", length - 1 - i);
  }
  return fmt::format("^({}|{})$", pattern, digits);
}

// Puts the model's bounds in place of the formats that stand for them (field_reader.h).
void bind_formats(json& schema, const ApiService& service) {
  if (schema.is_object() && schema.contains("format") && schema["format"].is_string()) {
    const auto format = schema["format"].get<std::string>();
    const EngineLimits& limits = service.model.engine->limits();
    schema.erase("format");
    if (format == kTokenIdFormat) {
      schema["maximum"] = limits.vocab_size - 1;
    } else if (format == kTokenKeyFormat) {
      schema["pattern"] = pattern_up_to(limits.vocab_size - 1);
    } else if (format == kTokenCountFormat) {
      schema["maximum"] = limits.max_model_len;
    } else if (format == kEmbeddingSizeFormat) {
      schema["maximum"] = service.model.config.hidden_size;
    } else if (format == kPromptNameFormat) {
      schema["enum"] = json::array({nullptr});
      for (const auto& [name, text] : service.model.embedding_format.prompts)
        schema["enum"].push_back(name);
    } else if (format == kModelFormat) {
      schema["enum"] = service.model_names;
      schema["enum"].push_back("");
      schema["enum"].push_back(nullptr);
    } else {
      schema["format"] = format;
    }
  }
  for (json& inner : schema) {
    if (inner.is_structured()) bind_formats(inner, service);
  }
}

// Moves what contradicts itself into schemas of their own. Where they stand by reference, tools
// that make requests of a schema check them at the end, instead of multiplying out every
// alternative.
void name_contradictions(json& requests) {
  json named = json::object();
  for (auto& [name, schema] : requests.items()) {
    if (!schema.contains("not")) continue;
    const std::string contradictions = name + "Contradictions";
    named[contradictions] = std::move(schema["not"]);
    named[contradictions]["description"] =
        "No request is one of these, but two names of one field may hold equal values.";
    schema["not"] = reference(contradictions);
  }
  requests.update(named);
}

json schemas(const ApiService& service) {
  DetokenizeRequest detokenize;
  json requests = {{"CompletionRequest", completion_request_schema()},
                   {"ChatCompletionRequest", chat_request_schema()},
                   {"EmbeddingRequest", embedding_request_schema()},
                   {"OllamaEmbedRequest", ollama_embed_schema()},
                   {"OllamaEmbeddingRequest", ollama_embedding_schema()},
                   {"OllamaGenerateRequest", ollama_generate_schema()},
                   {"OllamaShowRequest", ollama_show_schema()},
                   {"InfillRequest", infill_request_schema()},
                   {"MessagesRequest", messages_request_schema()},
                   {"MessageCountRequest", message_count_schema()},
                   {"RerankRequest", rerank_request_schema()},
                   {"ResponseRequest", response_request_schema()},
                   {"ScoreRequest", score_request_schema()},
                   {"TokenizeRequest", tokenize_request_schema()},
                   {"DetokenizeRequest", fields_schema(detokenize_field_table(detokenize))}};
  bind_formats(requests, service);
  name_contradictions(requests);
  requests.update(answer_schemas());
  requests.update(foreign_answer_schemas());
  requests.update(embedding_answer_schemas());
  return requests;
}

}  // namespace

std::string openapi_document(const ApiService& service, bool needs_key,
                             std::string_view root_path) {
  json components = {{"schemas", schemas(service)}};
  if (needs_key) components["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "Pagoda"}, {"version", version()}}},
                   {"paths", paths(service, needs_key)},
                   {"components", std::move(components)}};
  if (!root_path.empty()) document["servers"] = json::array({{{"url", root_path}}});
  return json_text(document, 2);
}

}  // namespace pagoda
