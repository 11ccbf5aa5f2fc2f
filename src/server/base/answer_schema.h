// Parts of the JSON schemas that describe answers in /openapi.json.
#pragma once

#include <utility>

#include "core/json.h"

namespace pagoda {

// Makes the schema of an object with these properties, all of them required.
inline nlohmann::json object_schema(nlohmann::json properties) {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& [name, schema] : properties.items()) names.push_back(name);
  return {{"type", "object"}, {"required", names}, {"properties", std::move(properties)}};
}

inline nlohmann::json list_schema(nlohmann::json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

inline nlohmann::json text_schema() {
  return {{"type", "string"}};
}

inline nlohmann::json text_or_null_schema() {
  return {{"type", {"string", "null"}}};
}

// Makes the schema of what error_body() returns.
inline nlohmann::json error_schema() {
  return object_schema({{"error", object_schema({{"message", text_schema()},
                                                 {"type", text_schema()},
                                                 {"param", text_or_null_schema()},
                                                 {"code", text_or_null_schema()}})}});
}

inline nlohmann::json count_schema() {
  return {{"type", "integer"}, {"minimum", 0}};
}

}  // namespace pagoda
