#include "server/openapi_document.h"

#include <nlohmann/json.hpp>

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

json responses(const char* description, json content) {
  const json failure = {{"description", "What went wrong"},
                        {"content", json_content(reference("Error"))}};
  return {{"200", {{"description", description}, {"content", std::move(content)}}},
          {"4XX", failure},
          {"5XX", failure}};
}

json get(const char* id, const char* summary, json content) {
  return {{"get",
           {{"operationId", id},
            {"summary", summary},
            {"responses", responses(summary, std::move(content))}}}};
}

json post(const char* id, const char* summary, const char* schema, bool streams) {
  json content = json_content({{"type", "object"}});
  if (streams) content["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  return {{"post",
           {{"operationId", id},
            {"summary", summary},
            {"security", {{{"bearer", json::array()}}, json::object()}},
            {"requestBody", {{"required", true}, {"content", json_content(reference(schema))}}},
            {"responses", responses(summary, std::move(content))}}}};
}

json schemas() {
  CompletionRequest completion;
  ChatRequest chat;
  TokenizeRequest tokenize;
  DetokenizeRequest detokenize;
  const json text_or_null = {{"type", {"string", "null"}}};
  const json error = {{"type", "object"},
                      {"required", {"message", "type", "param", "code"}},
                      {"properties",
                       {{"message", {{"type", "string"}}},
                        {"type", {{"type", "string"}}},
                        {"param", text_or_null},
                        {"code", text_or_null}}}};
  return {
      {"CompletionRequest", fields_schema(completion_field_table(completion))},
      {"ChatCompletionRequest", fields_schema(chat_field_table(chat))},
      {"TokenizeRequest", fields_schema(tokenize_field_table(tokenize))},
      {"DetokenizeRequest", fields_schema(detokenize_field_table(detokenize))},
      {"Error", {{"type", "object"}, {"required", {"error"}}, {"properties", {{"error", error}}}}}};
}

json paths() {
  const json any = json_content({{"type", "object"}});
  const json text = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  const json html = {{"text/html", {{"schema", {{"type", "string"}}}}}};
  json model = get("getModel", "One model", any);
  model["get"]["parameters"] = json::array(
      {{{"name", "model"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
  return {
      {"/", get("page", "The page", html)},
      {"/health", get("health", "Whether the engine works", any)},
      {"/version", get("version", "The server's version", any)},
      {"/metrics", get("metrics", "Figures in Prometheus' text format", text)},
      {"/openapi.json", get("openapi", "This document", any)},
      {"/v1/models", get("listModels", "The models served", any)},
      {"/v1/models/{model}", std::move(model)},
      {"/v1/completions",
       post("createCompletion", "Goes on with a text", "CompletionRequest", true)},
      {"/v1/chat/completions",
       post("createChatCompletion", "Answers a conversation", "ChatCompletionRequest", true)},
      {"/tokenize", post("tokenize", "Text or messages to token ids", "TokenizeRequest", false)},
      {"/detokenize", post("detokenize", "Token ids to text", "DetokenizeRequest", false)}};
}

}  // namespace

std::string openapi_document() {
  const json document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Pagoda"}, {"version", PAGODA_VERSION}}},
      {"paths", paths()},
      {"components",
       {{"schemas", schemas()},
        {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return document.dump(2);
}

}  // namespace pagoda
