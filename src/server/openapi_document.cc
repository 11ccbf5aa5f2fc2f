#include "server/openapi_document.h"

#include "core/json.h"
#include "core/version.h"
#include "server/base/answer_schema.h"
#include "server/endpoints.h"
#include "server/fields/field_reader.h"
#include "server/http/access.h"
#include "server/openapi_schemas.h"

namespace pagoda {
namespace {

using nlohmann::json;

json json_content(json schema) {
  return {{"application/json", {{"schema", std::move(schema)}}}};
}

json reference(std::string_view name) {
  return {{"$ref", fmt::format("#/components/schemas/{}", name)}};
}

// An error that every endpoint may answer instead.
struct Failure {
  std::string_view status, what;
  std::string_view header = {};
};

constexpr Failure kFailures[] = {
    {"401", "The API key is missing or wrong", "WWW-Authenticate"},
    {"405", "The path has no such method", "Allow"},
    {"429", "The queue is full", "Retry-After"},
    {"503", "The server is full, or ends", "Retry-After"},
    {"4XX", "What is wrong with the request"},
    {"5XX", "What went wrong"},
};

std::string response_name(const Failure& failure, const ErrorFormat& errors) {
  return fmt::format("{}{}", errors.schema.name, failure.status);
}

// Returns the failures in each API's form of errors, by name.
json shared_responses() {
  json all = json::object();
  for (const Endpoint& endpoint : endpoints()) {
    for (const Failure& failure : kFailures) {
      json& response = all[response_name(failure, endpoint.errors)];
      response = {{"description", failure.what},
                  {"content", json_content(reference(endpoint.errors.schema.name))}};
      if (!failure.header.empty())
        response["headers"][std::string(failure.header)] = {{"schema", {{"type", "string"}}}};
    }
  }
  return all;
}

json responses(std::string_view description, json content, const ErrorFormat& errors) {
  json all = {{"200", {{"description", description}, {"content", std::move(content)}}}};
  for (const Failure& failure : kFailures) {
    all[std::string(failure.status)]["$ref"] =
        fmt::format("#/components/responses/{}", response_name(failure, errors));
  }
  return all;
}

// Returns the schema of an answer as JSON.
json answer_schema(const NamedSchema& schema) {
  return schema.defined() ? reference(schema.name) : json({{"type", "object"}});
}

json answer_content(const Endpoint& endpoint) {
  const std::string type(endpoint.answer_type);
  if (type != "application/json") return {{type, {{"schema", {{"type", "string"}}}}}};
  json content = json_content(answer_schema(endpoint.answer_schema));
  if (endpoint.generates && !endpoint.is_whole) {
    content[std::string(endpoint.stream_type)]["schema"]["description"] =
        "If `stream` is true: chunks as JSON, one by one.";
  }
  return content;
}

// Returns the schema of the path's parameter. If it is a model, the served names are listed.
json parameter_schema(const Endpoint& endpoint, const ApiService& service) {
  json schema = {{"type", "string"}};
  if (parameter_name(endpoint.path) == "model") schema["enum"] = service.model_names;
  return schema;
}

json operation_json(const Endpoint& endpoint, const ApiService& service, bool needs_key) {
  json entry = {
      {"operationId", endpoint.operation_id},
      {"summary", endpoint.summary},
      {"responses", responses(endpoint.summary, answer_content(endpoint), endpoint.errors)}};
  if (endpoint.request_schema.defined())
    entry["requestBody"] = {{"required", true},
                            {"content", json_content(reference(endpoint.request_schema.name))}};
  if (needs_key && needs_api_key(endpoint.path))
    entry["security"] = json::array({{{"bearer", json::array()}}});
  json parameters =
      endpoint.query_parameters == nullptr ? json::array() : endpoint.query_parameters();
  if (const auto name = parameter_name(endpoint.path); !name.empty()) {
    parameters.push_back({{"name", name},
                          {"in", "path"},
                          {"required", true},
                          {"schema", parameter_schema(endpoint, service)}});
  }
  if (!parameters.empty()) entry["parameters"] = std::move(parameters);
  json operations = {{endpoint.takes_get() ? "get" : "post", entry}};
  if (endpoint.erase == nullptr) return operations;
  entry["operationId"] = fmt::format("{}Deletion", endpoint.operation_id);
  entry["responses"] = responses(
      "What was deleted", json_content(answer_schema(endpoint.erased_schema)), endpoint.errors);
  operations["delete"] = std::move(entry);
  return operations;
}

json paths(const ApiService& service, bool needs_key) {
  json all = json::object();
  for (const Endpoint& endpoint : endpoints())
    all[std::string(endpoint.path)] = operation_json(endpoint, service, needs_key);
  return all;
}

// Returns a pattern for the numbers from 0 to `most`, as JSON writes them.
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

// Replaces the formats for the model's bounds by these bounds (field_reader.h).
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
      schema["title"] = "ServedModel";
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

// Moves contradictions out of the requests' schemas, where generators of clients would take them
// for types. Tools that generate requests check a referenced schema at the end, instead of
// multiplying out all of its alternatives.
json take_contradictions(json& requests) {
  json contradictions = json::object();
  for (const auto& [name, schema] : requests.items()) {
    if (!schema.contains("not")) continue;
    json& taken = contradictions[name];
    taken = std::move(schema["not"]);
    remove_titles(taken);
    taken["description"] =
        "No request is one of these, but two names of one field may hold equal values.";
    schema["not"] = {{"$ref", fmt::format("#/components/x-contradictions/{}", name)}};
  }
  return contradictions;
}

json components(const ApiService& service) {
  json requests = json::object(), schemas = json::object();
  const auto add = [](const NamedSchema& schema, json& all) {
    const std::string name(schema.name);
    if (schema.defined() && !all.contains(name)) all[name] = schema.make();
  };
  for (const Endpoint& endpoint : endpoints()) {
    add(endpoint.request_schema, requests);
    add(endpoint.answer_schema, schemas);
    add(endpoint.erased_schema, schemas);
    add(endpoint.errors.schema, schemas);
  }
  bind_formats(requests, service);
  json contradictions = take_contradictions(requests);
  schemas.update(requests);
  for (json& schema : schemas) split_types(schema);
  share_parts(schemas);
  return {{"schemas", std::move(schemas)},
          {"responses", shared_responses()},
          {"x-contradictions", std::move(contradictions)}};
}

}  // namespace

std::string openapi_document(const ApiService& service, bool needs_key,
                             std::string_view root_path) {
  json parts = components(service);
  if (needs_key) parts["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "Pagoda"}, {"version", version()}}},
                   {"paths", paths(service, needs_key)},
                   {"components", std::move(parts)}};
  if (!root_path.empty()) document["servers"] = json::array({{{"url", root_path}}});
  return json_text(document);
}

}  // namespace pagoda
