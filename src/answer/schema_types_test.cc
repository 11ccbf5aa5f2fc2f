#include "answer/schema_types.h"

#include <gtest/gtest.h>

#include <string>

#include "core/json.h"
#include "tests/support/seconds_of.h"

namespace pagoda {
namespace {

// Returns the types of the property `x`.
JsonTypes types_in(const std::string& schema) {
  const OrderedJson root = parse_ordered_json(schema);
  return types_of(root.at("properties").at("x"), root);
}

JsonTypes types_by(const std::string& property) {
  return types_in(R"({"properties": {"x": )" + property + R"(},
      "$defs": {"text": {"type": "string"}, "a/b": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"},
                "two": {"anyOf": [{"$ref": "#/$defs/two"}, {"$ref": "#/$defs/two"}]}}})");
}

TEST(SchemaTypes, EachWordOfASchemaCounts) {
  const std::pair<std::string, JsonTypes> cases[] = {
      {R"({"type": "string"})", kStringType},
      {R"({"type": ["string", "null"]})", kStringType | kNullType},
      {R"({"type": "integer"})", kNumberType},
      {R"({"enum": ["a", 1, null]})", kStringType | kNumberType | kNullType},
      {R"({"type": "string", "enum": ["a", null]})", kStringType},
      {R"({"const": true})", kBooleanType},
      {R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", kStringType | kNullType},
      {R"({"oneOf": [{"type": "object"}, {"type": "array"}]})", kObjectType | kArrayType},
      {R"({"allOf": [{"type": ["string", "number"]}, {"type": ["number", "null"]}]})", kNumberType},
      {R"({"$ref": "#/$defs/text"})", kStringType},
      {R"({"$ref": "#/$defs/a~1b"})", kNumberType},
      {R"({"anyOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]})", kStringType | kNullType},
  };
  for (const auto& [property, types] : cases) EXPECT_EQ(types_by(property), types) << property;
}

TEST(SchemaTypes, WhatLeavesNoChoiceOutIsAnyType) {
  for (const std::string property :
       {"{}", "true", "false", R"({"description": "d"})", R"({"anyOf": [{}, {"type": "null"}]})",
        R"({"type": "odd"})", R"({"type": "string", "const": 1})", R"({"$ref": "#/$defs/none"})",
        R"({"$ref": "https://example.com/a"})", R"({"$ref": "#/$defs/loop"})"}) {
    EXPECT_EQ(types_by(property), kAnyType) << property;
  }
}

TEST(SchemaTypes, StringsThatAreListedAreChoices) {
  const auto choices_by = [](const std::string& property) {
    const OrderedJson root = parse_ordered_json(
        R"({"$defs": {"c": {"enum": ["a", "b"]}, "two": {"anyOf": [{"$ref": "#/$defs/two"}]}}})");
    return string_choices_of(parse_ordered_json(property), root);
  };
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {R"({"type": "string", "enum": ["a", 1, null]})", {"a", "null"}},
      {R"({"const": "a"})", {"a"}},
      {R"({"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]})", {"a", "b", "null"}}};
  for (const auto& [property, choices] : cases) EXPECT_EQ(choices_by(property), choices);
  for (const std::string property : {R"({"type": "string"})", R"({"$ref": "#/$defs/two"})",
                                     R"({"anyOf": [{"const": "a"}, {"type": "string"}]})"})
    EXPECT_EQ(choices_by(property), std::nullopt) << property;
}

TEST(SchemaTypes, ReferencesThatDoubleTakeLittleTime) {
  EXPECT_LT(testing::seconds_of([] { types_by(R"({"$ref": "#/$defs/two"})"); }), 1.0);
}

}  // namespace
}  // namespace pagoda
