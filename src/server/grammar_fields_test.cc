#include "server/grammar_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "server/request_json.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

std::optional<GrammarRequest> grammar_of(const std::string& fields) {
  std::optional<GrammarRequest> grammar;
  std::vector<std::string> unknown;
  const auto error =
      read_fields(RequestJson::parse("{" + fields + "}"), grammar_field_table(grammar), unknown);
  EXPECT_FALSE(error) << error->message;
  return grammar;
}

TEST(GrammarFields, EachKindIsRead) {
  const std::vector<std::tuple<const char*, GrammarKind, const char*>> cases = {
      {R"("response_format": {"type": "json_object"})", GrammarKind::kJsonSchema,
       R"({"type":"object"})"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"b": 1, "a": 2}}})",
       GrammarKind::kJsonSchema, R"({"b":1,"a":2})"},
      {R"("structured_outputs": {"json": {"z": {"y": 1, "x": []}}, "regex": null})",
       GrammarKind::kJsonSchema, R"({"z":{"y":1,"x":[]}})"},
      {R"("structured_outputs": {"json": "{\"a\": 1}"})", GrammarKind::kJsonSchema, R"({"a": 1})"},
      {R"("structured_outputs": {"regex": "a+", "json_object": false})", GrammarKind::kRegex, "a+"},
      {R"("structured_outputs": {"choice": ["b", "a"]})", GrammarKind::kChoice, R"(["b","a"])"},
      {R"("structured_outputs": {"grammar": "start: /a/"})", GrammarKind::kContextFree,
       "start: /a/"},
  };
  for (const auto& [fields, kind, text] : cases) {
    const auto grammar = grammar_of(fields);
    ASSERT_TRUE(grammar) << fields;
    EXPECT_EQ(grammar->spec.kind, kind) << fields;
    EXPECT_EQ(grammar->spec.text, text) << fields;
    EXPECT_NE(std::string(fields).find(grammar->param), std::string::npos);
  }
}

TEST(GrammarFields, NeutralValuesAskForNothing) {
  for (const char* fields : {R"("response_format": {"type": "text"})", R"("response_format": null)",
                             R"("response_format": {})", R"("structured_outputs": {})",
                             R"("structured_outputs": {"json": null, "whitespace_pattern": null})",
                             R"("structured_outputs": null, "response_format": false)"}) {
    EXPECT_FALSE(grammar_of(fields)) << fields;
  }
}

TEST(GrammarFields, WhatIsWrongIsNamed) {
  ApiClient client;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("response_format": 5)", "response_format"},
      {R"("response_format": {"type": 5})", "response_format"},
      {R"("response_format": {"type": "structural_tag"})", "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": []}})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {}, "lenient": 1}})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"tipe": 1}}})",
       "response_format"},
      {R"("structured_outputs": 5)", "structured_outputs"},
      {R"("structured_outputs": {"json": 5})", "structured_outputs"},
      {R"("structured_outputs": {"regex": "["})", "structured_outputs"},
      {R"("structured_outputs": {"regex": 1})", "structured_outputs"},
      {R"("structured_outputs": {"choice": "a"})", "structured_outputs"},
      {R"("structured_outputs": {"choice": [1]})", "structured_outputs"},
      {R"("structured_outputs": {"grammar": "x"})", "structured_outputs"},
      {R"("structured_outputs": {"regex": "a", "json_object": true})", "structured_outputs"},
      {R"("structured_outputs": {"whitespace_pattern": " "})", "structured_outputs"},
      {R"("structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"})",
       "structured_outputs"},
  };
  for (const auto& [fields, param] : cases) {
    const std::string body = R"({"prompt": "a", )" + fields + "}";
    EXPECT_EQ(client.refusal("/v1/completions", body).at("param"), param) << fields;
    const std::string chat = R"({"messages": [{"role": "user", "content": "a"}], )" + fields + "}";
    EXPECT_EQ(client.refusal("/v1/chat/completions", chat).at("param"), param) << fields;
  }
}

}  // namespace
}  // namespace pagoda
