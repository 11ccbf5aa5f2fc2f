#include "server/openapi_document.h"

#include <nlohmann/json.hpp>

#include "core/version.h"
#include "server/access.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/tokenize_request.h"

namespace pagoda {
namespace {

using nlohmann::json;

json json_content(json schema) {
  return {{"application/json", {{"schema", std::move(schema)}}}};
}

json reference(const std::string& name) {
  return {{"$ref", "#/components/schemas/" + name}};
}

json failure(const char* description, const char* header = nullptr) {
  json response = {{"description", description}, {"content", json_content(reference("Error"))}};
  if (header != nullptr) response["headers"][header] = {{"schema", {{"type", "string"}}}};
  return response;
}

json responses(const char* description, json content) {
  return {{"200", {{"description", description}, {"content", std::move(content)}}},
          {"401", failure("The API key is missing or wrong", "WWW-Authenticate")},
          {"405", failure("The path has no such method", "Allow")},
          {"429", failure("The queue is full", "Retry-After")},
          {"503", failure("The server is full, or ends", "Retry-After")},
          {"4XX", failure("What is wrong with the request")},
          {"5XX", failure("What went wrong")}};
}

// One path's operation but for its method.
struct Operation {
  std::string path;
  const char* id;
  const char* summary;
  json answer;  // a media type each
  const char* request = nullptr;
};

json operation_json(const Operation& operation, bool needs_key) {
  json entry = {{"operationId", operation.id},
                {"summary", operation.summary},
                {"responses", responses(operation.summary, operation.answer)}};
  if (operation.request != nullptr)
    entry["requestBody"] = {{"required", true},
                            {"content", json_content(reference(operation.request))}};
  if (needs_key && needs_api_key(operation.path))
    entry["security"] = json::array({{{"bearer", json::array()}}});
  return {{operation.request == nullptr ? "get" : "post", std::move(entry)}};
}

json streamable(const std::string& schema) {
  json content = json_content(reference(schema));
  content["text/event-stream"] = {
      {"schema", {{"description", "Chunks as JSON, one an event's data, and [DONE]."}}}};
  return content;
}

json paths(const ApiService& service, bool needs_key) {
  const json text = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  const json html = {{"text/html", {{"schema", {{"type", "string"}}}}}};
  const Operation operations[] = {
      {"/", "page", "A page to chat on", html},
      {"/health", "health", "Whether the engine works", json_content(reference("Health"))},
      {"/version", "version", "The server's version", json_content(reference("Version"))},
      {"/metrics", "metrics", "Figures in Prometheus' text format", text},
      {"/openapi.json", "openapi", "This document", json_content({{"type", "object"}})},
      {"/v1/models", "listModels", "The models served", json_content(reference("ModelList"))},
      {"/v1/models/{model}", "getModel", "One model", json_content(reference("Model"))},
      {"/v1/completions", "createCompletion", "Goes on with a text", streamable("Completion"),
       "CompletionRequest"},
      {"/v1/chat/completions", "createChatCompletion", "Answers a conversation",
       streamable("ChatCompletion"), "ChatCompletionRequest"},
      {"/tokenize", "tokenize", "Text or messages to token ids",
       json_content(reference("Tokenized")), "TokenizeRequest"},
      {"/detokenize", "detokenize", "Token ids to text", json_content(reference("Detokenized")),
       "DetokenizeRequest"}};
  json all = json::object();
  for (const Operation& operation : operations)
    all[operation.path] = operation_json(operation, needs_key);
  all["/v1/models/{model}"]["get"]["parameters"] =
      json::array({{{"name", "model"},
                    {"in", "path"},
                    {"required", true},
                    {"schema", {{"type", "string"}, {"enum", service.model_names}}}}});
  return all;
}

// An object with these properties, all of them always there.
json object_schema(json properties) {
  json names = json::array();
  for (const auto& [name, schema] : properties.items()) names.push_back(name);
  return {{"type", "object"}, {"required", names}, {"properties", std::move(properties)}};
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
  const json reason = {{"enum", {"stop", "length"}}};
  const json message = object_schema({{"role", {{"const", "assistant"}}}, {"content", text}});
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
          {"Model", model},
          {"ModelList", object_schema({{"object", {{"const", "list"}}},
                                       {"data", {{"type", "array"}, {"items", model}}}})},
          {"Completion", answer("text_completion", {{"text", text}})},
          {"ChatCompletion", answer("chat.completion", {{"message", message}})},
          {"Tokenized", object_schema({{"count", count},
                                       {"max_model_len", count},
                                       {"tokens", counts},
                                       {"token_strs", {{"type", {"array", "null"}}}}})},
          {"Detokenized", object_schema({{"prompt", text}})}};
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
    named[contradictions]["description"] = "No request is one of these.";
    schema["not"] = reference(contradictions);
  }
  requests.update(named);
}

json schemas(const ApiService& service) {
  DetokenizeRequest detokenize;
  json requests = {{"CompletionRequest", completion_request_schema()},
                   {"ChatCompletionRequest", chat_request_schema()},
                   {"TokenizeRequest", tokenize_request_schema()},
                   {"DetokenizeRequest", fields_schema(detokenize_field_table(detokenize))}};
  bind_formats(requests, service);
  name_contradictions(requests);
  requests.update(answer_schemas());
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
  return document.dump(2);
}

}  // namespace pagoda
