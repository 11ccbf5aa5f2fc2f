#include "server/openapi_schemas.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace pagoda {
namespace {

using nlohmann::json;

json split(const char* text) {
  json schema = parse_json(text);
  split_types(schema);
  return schema;
}

TEST(OpenapiSchemasTest, EnumerationsHaveOneTypeEach) {
  EXPECT_EQ(split(R"({"enum": ["a", null, 1, "b"], "type": ["string", "null"], "default": "a"})"),
            parse_json(R"({"default": "a", "anyOf": [{"type": "string", "enum": ["a", "b"]},
                           {"type": "null"}, {"type": "integer", "const": 1}]})"));
  EXPECT_EQ(split(R"({"enum": ["a"]})"), parse_json(R"({"type": "string", "const": "a"})"));
  EXPECT_EQ(split(R"({"const": true})"), parse_json(R"({"type": "boolean", "enum": [true]})"));
  EXPECT_EQ(split(R"({"enum": [null]})"), parse_json(R"({"type": "null"})"));
}

TEST(OpenapiSchemasTest, ListsAndObjectsOfAnEnumerationBecomeSchemas) {
  EXPECT_EQ(split(R"({"items": {"enum": [[], ["text"], {}, {"a": false}]}})").at("items"),
            parse_json(R"({"anyOf": [
                {"type": "array", "items": {}, "minItems": 0, "maxItems": 0},
                {"type": "array", "items": {"type": "string", "const": "text"}, "minItems": 1,
                 "maxItems": 1},
                {"type": "object", "additionalProperties": false},
                {"type": "object", "additionalProperties": false, "required": ["a"],
                 "properties": {"a": {"type": "boolean", "enum": [false]}}}]})"));
}

TEST(OpenapiSchemasTest, ObjectsThatMayBeNullAreApartFromNull) {
  EXPECT_EQ(split(R"({"type": ["object", "null"], "maxProperties": 1, "description": "It."})"),
            parse_json(R"({"description": "It.",
                           "anyOf": [{"type": "object", "maxProperties": 1}, {"type": "null"}]})"));
  const char* text_or_null = R"({"type": ["string", "null"], "maxLength": 1})";
  EXPECT_EQ(split(text_or_null), parse_json(text_or_null));
}

// Returns a schema whose text is long enough to be shared.
json long_one(const std::string& first, const std::string& title = "") {
  json schema = {{"type", "string"}, {"enum", {first, std::string(200, 'x')}}};
  if (!title.empty()) schema["title"] = title;
  return schema;
}

json object_with(json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}};
}

json reference(const std::string& name) {
  return {{"$ref", "#/components/schemas/" + name}};
}

TEST(OpenapiSchemasTest, PartsOfSeveralPlacesGetNames) {
  json described = long_one("a");
  described["description"] = "What it is here.";
  json named = {{"One", object_with({{"tool_choice", described}, {"alone", long_one("b")}})},
                {"Two", object_with({{"list", {{"type", "array"}, {"items", long_one("a")}}}})}};
  share_parts(named);
  EXPECT_EQ(named.at("One").at("properties").at("alone"), long_one("b"));
  const json& choice = named.at("One").at("properties").at("tool_choice");
  EXPECT_EQ(choice, parse_json(R"({"$ref": "#/components/schemas/ToolChoice",
                                   "description": "What it is here."})"));
  EXPECT_EQ(named.at("Two").at("properties").at("list").at("items"), reference("ToolChoice"));
  EXPECT_EQ(named.at("ToolChoice"), long_one("a"));
}

TEST(OpenapiSchemasTest, ATitleIsTheNameAndTakenNamesGetTheOwners) {
  const json two = object_with({{"a", long_one("a", "One")}, {"b", long_one("a", "One")}});
  json named = {{"One", object_with({{"x", {{"type", "null"}}}})}, {"Two", two}};
  share_parts(named);
  EXPECT_EQ(named.at("Two").at("properties"),
            json({{"a", reference("TwoOne")}, {"b", reference("TwoOne")}}));
  EXPECT_EQ(named.at("TwoOne"), long_one("a"));
}

TEST(OpenapiSchemasTest, APartThatEqualsANamedSchemaRefersToIt) {
  const json text = {{"type", "string"}};
  const json model =
      object_with({{"created", text}, {"id", text}, {"object", text}, {"owner", text}});
  json named = {{"AList", object_with({{"data", {{"type", "array"}, {"items", model}}}})},
                {"Model", model}};
  share_parts(named);
  EXPECT_EQ(named.at("AList").at("properties").at("data").at("items"), reference("Model"));
  EXPECT_EQ(named.at("Model"), model);
  EXPECT_EQ(named.size(), 2u);
}

TEST(OpenapiSchemasTest, WhatASchemaMustNotBeStaysWholeWithoutTitles) {
  json one = object_with({{"format", long_one("a", "Format")}});
  one["not"] = {{"anyOf", {object_with({{"format", long_one("a", "Format")}}), long_one("a")}}};
  json named = {{"One", one}};
  share_parts(named);
  EXPECT_EQ(named.at("One").at("properties").at("format"), reference("Format"));
  EXPECT_EQ(named.at("One").at("not"),
            json({{"anyOf", {object_with({{"format", long_one("a")}}), long_one("a")}}}));
}

}  // namespace
}  // namespace pagoda
