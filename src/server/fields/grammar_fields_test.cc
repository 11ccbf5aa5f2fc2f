#include "server/fields/grammar_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/generation/generation_group.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

GrammarFields fields_of(const std::string& text) {
  GrammarFields fields;
  std::vector<std::string> unknown;
  const auto error =
      read_fields(parse_ordered_json("{" + text + "}"), grammar_field_table(fields), unknown);
  EXPECT_FALSE(error) << error->message;
  EXPECT_TRUE(unknown.empty()) << unknown.front();
  return fields;
}

std::optional<GrammarRequest> grammar_of(const std::string& text) {
  return fields_of(text).grammar;
}

TEST(GrammarFields, EachKindIsRead) {
  const std::vector<std::tuple<const char*, GrammarKind, const char*>> cases = {
      {R"("response_format": {"type": "json_object"})", GrammarKind::kJsonSchema,
       R"({"type":"object"})"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"b": 1, "a": 2}}})",
       GrammarKind::kJsonSchema, R"({"b":1,"a":2})"},
      {R"("response_format": {"type": "json_schema", "schema": {"b": 1, "a": 2}})",
       GrammarKind::kJsonSchema, R"({"b":1,"a":2})"},
      {R"("response_format": {"type": "json_schema", "name": "n", "description": "d", "strict": true,
          "schema": {"b": 1}, "json_schema": null})",
       GrammarKind::kJsonSchema, R"({"b":1})"},
      {R"("structured_outputs": {"json": {"z": {"y": 1, "x": []}}, "regex": null})",
       GrammarKind::kJsonSchema, R"({"z":{"y":1,"x":[]}})"},
      {R"("structured_outputs": {"json": "{\"a\": 1}"})", GrammarKind::kJsonSchema, R"({"a": 1})"},
      {R"("structured_outputs": {"regex": "a+", "json_object": false})", GrammarKind::kRegex, "a+"},
      {R"("structured_outputs": {"choice": ["b", "a"]})", GrammarKind::kChoice, R"(["b","a"])"},
      {R"("structured_outputs": {"grammar": "start: /a/"})", GrammarKind::kContextFree,
       "start: /a/"},
      {R"("response_format": {"type": "json_object", "schema": {"required": ["a"]}})",
       GrammarKind::kJsonSchema, R"({"required":["a"],"type":"object"})"},
      {R"("json_schema": {"z": 1, "y": 2})", GrammarKind::kJsonSchema, R"({"z":1,"y":2})"},
      {R"("json_schema": "{\"z\": 1}", "grammar": "")", GrammarKind::kJsonSchema, R"({"z": 1})"},
      {R"("format": "json")", GrammarKind::kJsonSchema, R"({"type":"object"})"},
      {R"("format": {"z": 1, "y": 2})", GrammarKind::kJsonSchema, R"({"z":1,"y":2})"},
      {R"("grammar": "root ::= \"a\"")", GrammarKind::kContextFree, R"(root ::= "a")"},
      {R"("ebnf": "root ::= \"a\"")", GrammarKind::kContextFree, R"(root ::= "a")"},
      {R"("regex": "a+")", GrammarKind::kRegex, "a+"},
      {R"("guided_json": {"z": 1, "y": 2})", GrammarKind::kJsonSchema, R"({"z":1,"y":2})"},
      {R"("guided_regex": "a+")", GrammarKind::kRegex, "a+"},
      {R"("guided_choice": ["b", "a"])", GrammarKind::kChoice, R"(["b","a"])"},
      {R"("guided_grammar": "start: /a/")", GrammarKind::kContextFree, "start: /a/"},
  };
  for (const auto& [fields, kind, text] : cases) {
    const auto grammar = grammar_of(fields);
    ASSERT_TRUE(grammar) << fields;
    EXPECT_EQ(grammar->spec.kind, kind) << fields;
    EXPECT_EQ(grammar->spec.text, text) << fields;
    EXPECT_NE(std::string(fields).find(grammar->param), std::string::npos);
  }
}

TEST(GrammarFields, TwoNamesMayAskForOneGrammar) {
  for (const char* fields :
       {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"b": 1, "a": 2}}},
           "guided_json": {"b": 1, "a": 2}, "json_schema": "{\"b\":1,\"a\":2}")",
        R"("response_format": {"type": "json_object"}, "format": "json")",
        R"("structured_outputs": {"regex": "a+"}, "guided_regex": "a+", "regex": "a+")",
        R"("structured_outputs": {"choice": ["a", "b"]}, "guided_choice": ["a", "b"])"}) {
    EXPECT_TRUE(grammar_of(fields)) << fields;
  }
  const auto first = grammar_of(R"("response_format": {"type": "json_object"}, "format": "json")");
  EXPECT_EQ(first->param, "response_format");
  EXPECT_TRUE(first->is_for_text);
}

TEST(GrammarFields, NeutralValuesAskForNothing) {
  for (const char* fields : {R"("response_format": {"type": "text"})", R"("response_format": null)",
                             R"("response_format": {})", R"("structured_outputs": {})",
                             R"("structured_outputs": {"json": null, "whitespace_pattern": null})",
                             R"("structured_outputs": null, "response_format": false)",
                             R"("structured_outputs": {"disable_any_whitespace": true})",
                             R"("structured_outputs": {"structural_tag": null})",
                             R"("response_format": {"type": "text", "json_schema": null})",
                             R"("grammar": "", "json_schema": null, "format": "")",
                             R"("guided_json": null, "guided_regex": null, "regex": null)"}) {
    EXPECT_FALSE(grammar_of(fields)) << fields;
  }
}

TEST(GrammarFields, WhiteSpaceCanBeOffOrByAPattern) {
  const auto white_space_of = [](const std::string& text) -> std::optional<std::string> {
    const auto asked = fields_of(text).white_space;
    if (!asked) return {};
    return asked->pattern;
  };
  EXPECT_EQ(white_space_of(R"("json_schema": {})"), std::nullopt);
  EXPECT_EQ(
      white_space_of(R"("structured_outputs": {"json": {}, "disable_any_whitespace": false})"),
      std::nullopt);
  EXPECT_EQ(white_space_of(R"("structured_outputs": {"json": {}, "disable_any_whitespace": true})"),
            "");
  EXPECT_EQ(white_space_of(R"("response_format": {"type": "json_object"},
                              "structured_outputs": {"disable_any_whitespace": true})"),
            "");
  EXPECT_EQ(white_space_of(R"("structured_outputs": {"json": {}, "whitespace_pattern": " ?"})"),
            " ?");
  EXPECT_EQ(white_space_of(R"("guided_json": {}, "guided_whitespace_pattern": " ?")"), " ?");
}

// Expects that each request with such fields is refused, and that the error names the second.
void expect_refused(const std::vector<std::pair<std::string, std::string>>& cases) {
  ApiClient client;
  for (const auto& [fields, param] : cases) {
    const std::string body = R"({"prompt": "a", )" + fields + "}";
    EXPECT_EQ(client.refusal("/v1/completions", body).at("param"), param) << fields;
    const std::string chat = R"({"messages": [{"role": "user", "content": "a"}], )" + fields + "}";
    EXPECT_EQ(client.refusal("/v1/chat/completions", chat).at("param"), param) << fields;
  }
}

TEST(GrammarFields, WhatIsWrongIsNamed) {
  expect_refused({
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
      {R"("structured_outputs": {"json": {}, "whitespace_pattern": "x"})", "structured_outputs"},
      {R"("structured_outputs": {"json": {}, "whitespace_pattern": "[^a]"})", "structured_outputs"},
      {R"("structured_outputs": {"whitespace_pattern": "x"})", "structured_outputs"},
      {R"("structured_outputs": {"whitespace_pattern": " ", "disable_any_whitespace": true})",
       "structured_outputs"},
      {R"("structured_outputs": {"disable_any_whitespace": true}, "guided_whitespace_pattern": " ")",
       "guided_whitespace_pattern"},
      {R"("guided_whitespace_pattern": "x", "guided_regex": "a")", "guided_whitespace_pattern"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": 5}})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}})",
       "response_format"},
      {R"("structured_outputs": {"json": {}, "disable_any_whitespace": 1})", "structured_outputs"},
      {R"("structured_outputs": {"structural_tag": "{}"})", "structured_outputs"},
      {R"("response_format": {"type": "json_object", "schema": {"tipe": 1}})", "response_format"},
      {R"("response_format": {"type": "json_object", "schema": 5})", "response_format"},
      {R"("response_format": {"type": "text", "schema": {"type": "object"}})", "response_format"},
      {R"("response_format": {"type": "json_object", "strict": true})", "response_format"},
      {R"("json_schema": {"tipe": 1})", "json_schema"},
      {R"("json_schema": "{")", "json_schema"},
      {R"("json_schema": [])", "json_schema"},
      {R"("format": "yaml")", "format"},
      {R"("format": {"tipe": 1})", "format"},
      {R"("grammar": "x")", "grammar"},
      {R"("ebnf": 5)", "ebnf"},
      {R"("regex": "")", "regex"},
      {R"("guided_regex": "")", "guided_regex"},
      {R"("structured_outputs": {"regex": ""})", "structured_outputs"},
      {R"("regex": "[")", "regex"},
      {R"("guided_json": 5)", "guided_json"},
      {R"("guided_regex": "[")", "guided_regex"},
      {R"("guided_choice": "a")", "guided_choice"},
      {R"("guided_grammar": "x")", "guided_grammar"},
  });
}

TEST(GrammarFields, WhatIsWrongTogetherIsNamed) {
  expect_refused({
      {R"("regex": "a", "json_schema": {})", "regex"},
      {R"("regex": "a", "guided_regex": "b")", "guided_regex"},
      {R"("regex": "a", "grammar": "a")", "regex"},
      {R"("response_format": {"type": "json_object"}, "guided_json": {"type": "string"})",
       "guided_json"},
      {R"("response_format": {"type": "json_schema", "schema": []})", "response_format"},
      {R"("response_format": {"type": "json_schema", "schema": {}, "name": 5})", "response_format"},
      {R"("response_format": {"type": "json_schema", "schema": {}, "lenient": true})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "schema": {}, "json_schema": {"schema": {}}})",
       "response_format"},
      {R"("structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"})",
       "structured_outputs"},
  });
}

// Errors name the place where a format stands, and where its schema stands in it.
TEST(GrammarFields, AFormatSaysWhereItsSchemaIsMissing) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "json_schema"})", ".schema': expected a JSON Schema"},
      {R"({"type": "json_schema", "name": "n", "schema": null})",
       ".schema': expected a JSON Schema"},
      {R"({"type": "json_schema", "json_schema": {"schema": []}})",
       ".json_schema.schema': expected a JSON Schema"},
      {R"({"type": "json_schema", "json_schema": 5})",
       ".json_schema': expected an object with a 'schema'"},
      {R"({"type": "json_schema", "schema": {}, "lenient": true})",
       "': 'lenient' is not supported"},
  };
  ApiClient client;
  for (const auto& [format, message] : cases) {
    EXPECT_EQ(client
                  .refusal("/v1/completions",
                           fmt::format(R"({{"prompt": "a", "response_format": {}}})", format))
                  .at("message"),
              std::string("'response_format") + message);
    EXPECT_EQ(client
                  .refusal("/v1/responses",
                           fmt::format(R"({{"input": "a", "text": {{"format": {}}}}})", format))
                  .at("message"),
              std::string("'text.format") + message);
  }
}

TEST(GrammarFields, AChoiceIsNoLongerThanItsSchemaSays) {
  const auto error_of = [](std::size_t num_choices) {
    const RequestJson choices = std::vector<std::string>(num_choices, "a");
    GrammarFields fields;
    std::vector<std::string> unknown;
    return read_fields({{"guided_choice", choices}}, grammar_field_table(fields), unknown);
  };
  EXPECT_FALSE(error_of(kMaxGrammarChoices));
  const auto error = error_of(kMaxGrammarChoices + 1);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "'guided_choice': expected at most 1024 in the list, got 1025");
}

TEST(GrammarFields, TokensThatTheGrammarCannotGoOnWithAreNamedBesideIt) {
  ApiClient client;
  client.answer("/v1/completions",
                R"({"prompt": "say a", "regex": "a+", "allowed_token_ids": [98]})");
  const auto source = client.engine().last_request().mask_source->clone();
  std::vector<std::uint32_t> bits(16);
  TextPiece piece;
  piece.finish_reason = FinishReason::kError;
  piece.error = source->fill_mask(bits);
  const auto error = failure_of(piece);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->param, "allowed_token_ids");
  EXPECT_EQ(error->message,
            "'allowed_token_ids': expected a token with which 'regex' can go on, got none");
}

TEST(GrammarFields, WhatFailsWhileAnAnswerIsDrawnNamesTheField) {
  ApiClient client;
  const GrammarSpec spec = grammar_of(R"("regex": "x{3}")")->spec;
  const auto source = client.model().grammars->compile(spec);
  ASSERT_TRUE(source.ok()) << source.status().message();
  TextPiece piece;
  piece.finish_reason = FinishReason::kError;
  piece.error = (*source)->clone()->accept(1);  // no "x"
  const auto error = failure_of(piece);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->param, "regex");
  EXPECT_EQ(error->message.rfind("'regex': the grammar cannot be followed any further: ", 0), 0u)
      << error->message;
}

}  // namespace
}  // namespace pagoda
