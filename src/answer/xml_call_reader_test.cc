#include "answer/xml_call_reader.h"

#include <gtest/gtest.h>

#include "answer/answer_reading_rig.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

// Returns the arguments that a call in tags has for a tool `t`, whose parameters have these
// properties.
Answer read_tags(const std::string& properties, const std::string& tags) {
  auto tools = std::make_shared<std::vector<ToolDefinition>>();
  tools->push_back({.name = "t",
                    .parameters_json = R"({"type": "object", "properties": {)" + properties +
                                       R"(}, "$defs": {"text": {"type": "string"}}})"});
  const AnswerParserOptions options = {
      .tool_syntax = ToolSyntax::kQwenXml, .reads_calls = true, .tools = std::move(tools)};
  return read(options, "<tool_call>\n<function=t>\n" + tags);
}

// Expects a value of a parameter with a schema to be read as `json`.
void expect_value(const std::string& property, const std::string& text, const std::string& json) {
  const std::string tags = "<parameter=x>\n" + text + "\n</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(read_tags("\"x\": " + property, tags),
            (Answer{.calls = {{"t", "{\"x\": " + json + "}"}}}))
      << property << text;
}

TEST(XmlCallReader, AValueIsTextWhereverItsSchemaAllowsAString) {
  const std::string optional_text = R"({"anyOf": [{"type": "string"}, {"type": "null"}]})";
  for (const std::string& property :
       {optional_text, std::string(R"({"type": "string"})"),
        std::string(R"({"type": ["string", "integer"]})"),
        std::string(R"({"oneOf": [{"$ref": "#/$defs/text"}, {"type": "integer"}]})"),
        std::string(R"({"allOf": [{"$ref": "#/$defs/text"}, {"description": "d"}]})"),
        std::string(R"({"const": "12"})"), std::string(R"({"enum": ["12", "3"]})")}) {
    expect_value(property, "12", R"("12")");
    expect_value(property, "{\"a\": 1}", R"("{\"a\": 1}")");
    expect_value(property, "nullable", R"("nullable")");
    expect_value(property, "nul", R"("nul")");
    expect_value(property, "", R"("")");
    expect_value(property, "a\n\n\"b\"\\\x01 é", R"("a\n\n\"b\"\\\u0001 é")");
  }
  expect_value(R"({"type": "string"})", "None", R"("None")");
  expect_value(optional_text, "null", "null");
  expect_value(optional_text, "None", "null");
}

TEST(XmlCallReader, OtherValuesAreJsonOrPythonsWords) {
  expect_value(R"({"type": "boolean"})", "True", "true");
  expect_value(R"({"type": ["boolean", "null"]})", "False", "false");
  expect_value(R"({"type": ["boolean", "null"]})", "None", "null");
  expect_value(R"({"type": "integer"})", "twelve", R"("twelve")");
  expect_value(R"({"type": "object"})", "{\"a\": 1}", R"({"a": 1})");
  expect_value("{}", "12", "12");
  expect_value("{}", "True", R"("True")");
}

TEST(XmlCallReader, OnlyWhatEndsAValueIsItsClosingTag) {
  const std::string properties = R"("x": {"type": "string"}, "y": {"type": "string"})";
  const std::string end = "\n</parameter>\n</function>\n</tool_call>";
  for (const std::string text : {"a </parameter> b", "a\n</parameter>\n<b>", "</parameter",
                                 "a\n</function>\nb", "<parameter=z>", "a\n<parameter=z>\nb",
                                 "a <parameter=y> b", "a\n<parameter=x>", "<", "a\n\n"}) {
    EXPECT_EQ(read_tags(properties, "<parameter=x>\n" + text + end),
              (Answer{.calls = {{"t", "{\"x\": " + json_string(text) + "}"}}}))
        << text;
  }
  const Answer both = {.calls = {{"t", R"({"x": "Basel", "y": "BS"})"}}};
  for (const std::string tags :
       {"<parameter=x>\nBasel\n<parameter=y>\nBS\n</parameter>\n</function>\n</tool_call>",
        "<parameter=x>\nBasel\n</parameter>\n<parameter=y>\nBS\n</function>\n</tool_call>",
        "<parameter=x>\nBasel\n</parameter>\n<parameter=y>\nBS\n</function>\n",
        "<parameter=x>\nBasel\n</parameter>\n<parameter=y>\nBS\n</parameter>\n</tool_call>",
        "<parameter=x>Basel</parameter><parameter=y>BS</parameter></function></tool_call>"})
    EXPECT_EQ(read_tags(properties, tags), both) << tags;
}

TEST(XmlCallReader, AValueThatIsCutOffIsKept) {
  const std::string properties = R"("x": {"type": "string"}, "y": {"type": "integer"})";
  const std::pair<std::string, std::string> cases[] = {
      {"<parameter=x>\nhalf done\n</param", R"({"x": "half done)"},
      {"<parameter=x>\nhalf done\n</parameter>\n<par", R"({"x": "half done")"},
      {"<parameter=y>\n12", R"({"y": 12)"},
      {"<parameter=y>\n12\n</parameter>\n<parameter=z>\ntext", R"({"y": 12, "z": "text)"},
      {"<parameter=x>\n", ""}};
  for (const auto& [tags, arguments] : cases) {
    EXPECT_EQ(read_tags(properties, tags), (Answer{.calls = {{"t", arguments}}, .is_broken = true}))
        << tags;
  }
}

TEST(XmlCallReader, StringsBetweenTagsComePieceByPiece) {
  AnswerParser parser(calls_in(ToolSyntax::kQwenXml));
  parser.push("<function=get_weather>\n<parameter=city>\n");
  EXPECT_EQ(parser.push("Zür"), (std::vector<AnswerPart>{{Kind::kArguments, "{\"city\": \"Zür"}}));
  EXPECT_EQ(parser.push("ich"), (std::vector<AnswerPart>{{Kind::kArguments, "ich"}}));
}

TEST(XmlCallReader, AFunctionsTagInProseIsNoCall) {
  const std::string text = "Write <function=f> first, then <function=get_weather>\nand more.";
  EXPECT_EQ(read(calls_in(ToolSyntax::kQwenXml), text), Answer{.content = text});
}

}  // namespace
}  // namespace pagoda
