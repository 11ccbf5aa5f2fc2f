#include "answer/answer_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/answer_parser.h"
#include "core/json.h"
#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::vector<ToolDefinition>& tools() {
  static const std::vector<ToolDefinition> all = {
      {.name = "get_weather",
       .parameters_json =
           R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
               "unit": {"type": "string", "enum": ["c", "f"]}, "at": {"$ref": "#/$defs/at"}},
               "required": ["city"], "$defs": {"at": {"type": "object", "properties": {"h": {"type": "boolean"}}}}})"},
      {.name = "now"}};
  return all;
}

class AnswerGrammarTest : public GrammarTest {
 protected:
  AnswerGrammarOptions options(ToolSyntax syntax) const {
    return {.syntax = syntax, .special_token_id = [](std::string_view) { return std::nullopt; }};
  }
  bool takes_answer(const AnswerGrammarOptions& options, std::string_view answer) {
    return takes_whole(GrammarKind::kAnswer, answer_grammar(tools(), options), answer);
  }
};

TEST_F(AnswerGrammarTest, TakesCallsAndNothingElse) {
  const struct {
    ToolSyntax syntax;
    std::vector<std::string_view> taken, refused;
  } cases[] = {
      {ToolSyntax::kHermes,
       {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a\", \"days\": "
        "3}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"now\", \"arguments\": "
        "{}}\n</tool_call>\n<tool_call>\n{\"name\": "
        "\"now\", \"arguments\": {}}\n</tool_call>"},
       {"no", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"later\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": 1}}\n</tool_call>"}},
      {ToolSyntax::kQwenXml,
       {"<tool_call>\n<function=get_weather>\n<parameter=city>\na <b>\nc\n</parameter>\n"
        "<parameter=unit>\nf\n</parameter>\n<parameter=at>\n{\"h\": true}\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=now>\n</function>\n</tool_call>"},
       {"<tool_call>\n<function=get_weather>\n</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\na\n</parameter>\n"
        "<parameter=unit>\nk\n</parameter>\n</function>\n</tool_call>"}},
      {ToolSyntax::kLlama3,
       {R"({"name": "get_weather", "parameters": {"city": "a"}})",
        R"({"name": "now", "parameters": {}}; {"name": "now", "parameters": {}})"},
       {R"({"name": "get_weather", "parameters": {"city": 1}})"}},
      {ToolSyntax::kPythonic,
       {R"([get_weather(city="a", days=3), now()])", R"([get_weather(city="a", unit="c")])"},
       {R"([get_weather(days=3)])", R"([get_weather(city=3)])", R"([now(x=1)])", "[]"}},
      {ToolSyntax::kMistral,
       {R"([TOOL_CALLS][{"name": "now", "arguments": {}}, {"name": "get_weather", "arguments": {"city": "a"}}])"},
       {"[TOOL_CALLS][]"}},
      {ToolSyntax::kMistralV11,
       {R"([TOOL_CALLS]get_weather[ARGS]{"city": "a"}[TOOL_CALLS]now[ARGS]{})"},
       {"[TOOL_CALLS]get_weather[ARGS]{}"}},
  };
  for (const auto& each : cases) {
    const AnswerGrammarOptions all = options(each.syntax);
    for (const std::string_view answer : each.taken)
      EXPECT_TRUE(takes_answer(all, answer)) << answer;
    for (const std::string_view answer : each.refused)
      EXPECT_FALSE(takes_answer(all, answer)) << answer;
  }
}

// A value between tags has no quotes wherever its schema allows a string.
TEST_F(AnswerGrammarTest, StringsBetweenTagsHaveNoQuotes) {
  const std::vector<ToolDefinition> tool = {{.name = "f", .parameters_json = R"({
      "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                     "b": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}]},
                     "c": {"type": ["integer", "null"]}}})"}};
  const std::string grammar = answer_grammar(tool, options(ToolSyntax::kQwenXml));
  const auto takes_value = [&](const std::string& name, const std::string& value) {
    return takes_whole(GrammarKind::kAnswer, grammar,
                       "<tool_call>\n<function=f>\n<parameter=" + name + ">\n" + value +
                           "\n</parameter>\n</function>\n</tool_call>");
  };
  EXPECT_TRUE(takes_value("a", "any text"));
  EXPECT_TRUE(takes_value("b", "x"));
  EXPECT_TRUE(takes_value("b", "null"));
  EXPECT_FALSE(takes_value("b", "\"x\""));
  EXPECT_FALSE(takes_value("b", "z"));
  EXPECT_TRUE(takes_value("c", "3"));
  EXPECT_FALSE(takes_value("c", "three"));
}

// A custom tool's regular expression holds the whole input, wherever the syntax writes it.
TEST_F(AnswerGrammarTest, ARegexHoldsTheInputOfACustomTool) {
  ToolDefinition tool = {
      .name = "f",
      .parameters_json = R"({"properties": {"input": {"type": "string"}}, "required": ["input"]})",
      .is_strict = true,
      .is_custom = true,
      .input_regex = "a/b|\\/\"\n?[^/]"};
  const std::tuple<ToolSyntax, std::string, std::string, bool> cases[] = {
      {ToolSyntax::kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"input\": \"",
       "\"}}\n</tool_call>", true},
      {ToolSyntax::kQwenXml, "<tool_call>\n<function=f>\n<parameter=input>\n",
       "\n</parameter>\n</function>\n</tool_call>", false},
      {ToolSyntax::kLlama3, R"({"name": "f", "parameters": {"input": ")", "\"}}", true},
      {ToolSyntax::kPythonic, "[f(input=\"", "\")]", true},
      {ToolSyntax::kMistral, R"([TOOL_CALLS][{"name": "f", "arguments": {"input": ")", "\"}}]",
       true},
      {ToolSyntax::kMistralV11, R"([TOOL_CALLS]f[ARGS]{"input": ")", "\"}", true},
  };
  for (const auto& [syntax, begin, end, is_quoted] : cases) {
    for (const bool may_hold_prose : {false, true}) {
      AnswerGrammarOptions each = options(syntax);
      each.may_hold_prose = may_hold_prose;
      const std::string grammar = answer_grammar(std::span(&tool, 1), each);
      const auto takes_input = [&, begin = begin, end = end,
                                is_quoted = is_quoted](const std::string& input) {
        const std::string quoted = json_string(input);
        const std::string written = is_quoted ? quoted.substr(1, quoted.size() - 2) : input;
        return takes_whole(GrammarKind::kAnswer, grammar, begin + written + end);
      };
      for (const char* input : {"a/b", "/\"c", "/\"\nc"}) EXPECT_TRUE(takes_input(input)) << input;
      for (const char* input : {"", "a", "a/b ", "xa/b", "/\"/"})
        EXPECT_FALSE(takes_input(input)) << input;
    }
  }
}

TEST_F(AnswerGrammarTest, OneCallWhereOneIsWanted) {
  AnswerGrammarOptions one = options(ToolSyntax::kLlama3);
  one.has_one_call = true;
  EXPECT_TRUE(takes_answer(one, R"({"name": "now", "parameters": {}})"));
  EXPECT_FALSE(
      takes_answer(one, R"({"name": "now", "parameters": {}}; {"name": "now", "parameters": {}})"));
}

TEST_F(AnswerGrammarTest, CallsAreBounded) {
  const std::tuple<ToolSyntax, std::string, std::string> cases[] = {
      {ToolSyntax::kHermes, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
       "\n"},
      {ToolSyntax::kLlama3, R"({"name": "now", "parameters": {}})", "; "},
      {ToolSyntax::kMistralV11, "[TOOL_CALLS]now[ARGS]{}", ""}};
  for (const auto& [syntax, call, separator] : cases) {
    std::string calls = call;
    for (int i = 1; i < kMaxCalls; ++i) calls += separator + call;
    EXPECT_TRUE(takes_answer(options(syntax), calls)) << call;
    EXPECT_FALSE(takes_answer(options(syntax), calls + separator + call)) << call;
  }
}

TEST_F(AnswerGrammarTest, AThoughtMayStandBeforeCalls) {
  AnswerGrammarOptions thinking = options(ToolSyntax::kLlama3);
  thinking.thought = ThoughtMarks{"<think>", "</think>"};
  const std::string call = R"({"name": "now", "parameters": {}})";
  EXPECT_TRUE(takes_answer(thinking, call));
  EXPECT_TRUE(takes_answer(thinking, "<think>\nso < that\n</think>\n\n" + call));
  EXPECT_FALSE(takes_answer(thinking, "so\n</think>\n\n" + call));
  thinking.begins_in_thought = true;
  EXPECT_TRUE(takes_answer(thinking, "so\n</think>\n\n" + call));
  EXPECT_FALSE(takes_answer(thinking, "so\n</think>\n\nno"));
}

TEST_F(AnswerGrammarTest, ProseMayStandAroundStrictCalls) {
  const struct {
    ToolSyntax syntax;
    std::vector<std::string_view> taken, refused;
  } cases[] = {
      {ToolSyntax::kHermes,
       {"", "no call, a < b <tool", "<think>so</think> yes",
        "Look: <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
        "\"a\"}}\n</tool_call> and <tool_call>\n{\"name\": \"now\", \"arguments\": {\"x\": "
        "1}}\n</tool_call>!"},
       {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>no", "a <tool_call>"}},
      {ToolSyntax::kQwenXml,
       {"no",
        "<tool_call>\n<function=now>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>"},
       {"<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"}},
      {ToolSyntax::kLlama3,
       {"", "no", " no {", R"({"name": "now", "parameters": {"x": 1}})"},
       {R"({"name": "get_weather", "parameters": {}})", R"({"a": 1})"}},
      {ToolSyntax::kPythonic,
       {"no [1]", R"([now(x=1, y="a"), get_weather(city="a")])"},
       {"[1]", "[get_weather()]"}},
      {ToolSyntax::kMistral,
       {"no", R"(so [TOOL_CALLS][{"name": "now", "arguments": {"x": 1}}])"},
       {R"([TOOL_CALLS][{"name": "get_weather", "arguments": {}}])"}},
      {ToolSyntax::kMistralV11,
       {"no", R"(so [TOOL_CALLS]now[ARGS]{"x": 1}[TOOL_CALLS]get_weather[ARGS]{"city": "a"})"},
       {"[TOOL_CALLS]get_weather[ARGS]{}"}},
  };
  std::vector<ToolDefinition> some_strict = tools();
  some_strict[0].is_strict = true;
  for (const auto& each : cases) {
    AnswerGrammarOptions free = options(each.syntax);
    free.may_hold_prose = true;
    const std::string grammar = answer_grammar(some_strict, free);
    for (const std::string_view answer : each.taken)
      EXPECT_TRUE(takes_whole(GrammarKind::kAnswer, grammar, answer)) << answer;
    for (const std::string_view answer : each.refused)
      EXPECT_FALSE(takes_whole(GrammarKind::kAnswer, grammar, answer)) << answer;
  }
}

TEST_F(AnswerGrammarTest, JsonMayStandInsteadOfCalls) {
  const std::pair<ToolSyntax, std::string_view> cases[] = {
      {ToolSyntax::kHermes,
       "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"x\": 1}}\n</tool_call>"},
      {ToolSyntax::kQwenXml, "<tool_call>\n<function=now>\n</function>\n</tool_call>"},
      {ToolSyntax::kLlama3, R"({"name": "now", "parameters": {"x": 1}})"},
      {ToolSyntax::kPythonic, "[now(x=1)]"},
      {ToolSyntax::kMistral, R"([TOOL_CALLS][{"name": "now", "arguments": {"x": 1}}])"},
      {ToolSyntax::kMistralV11, R"([TOOL_CALLS]now[ARGS]{"x": 1})"},
  };
  for (const auto& [syntax, call] : cases) {
    AnswerGrammarOptions either = options(syntax);
    either.json_schema =
        "{\"properties\": {\"name\": {\"type\": \"string\"},\r\n\"a\":\n"
        "{\"type\": \"integer\"}}, \"type\": \"object\"}";
    either.thought = ThoughtMarks{"<think>", "</think>"};
    for (const std::string thought : {"", "<think>so</think>\n"}) {
      for (const std::string_view answer :
           {std::string_view(R"({"a": 3})"), std::string_view(R"({"name": "now"})"),
            std::string_view(R"({"name": "nobody", "a": 3})"), call}) {
        EXPECT_TRUE(takes_answer(either, thought + std::string(answer))) << thought << answer;
      }
    }
    for (const std::string& answer :
         {std::string("so"), std::string(R"({"a": "b"})"), R"({"a": 3})" + std::string(call),
          std::string(call) + R"({"a": 3})"}) {
      EXPECT_FALSE(takes_answer(either, answer)) << answer;
    }
  }
  AnswerGrammarOptions no_tools = options(ToolSyntax::kHermes);
  no_tools.json_schema = R"({"type": "integer"})";
  const std::string grammar = answer_grammar({}, no_tools);
  EXPECT_TRUE(takes_whole(GrammarKind::kAnswer, grammar, "12"));
  EXPECT_FALSE(takes_whole(GrammarKind::kAnswer, grammar, "<think>so</think>12"));
}

// Text tokens cannot spell such marks, so the grammar has their ids.
TEST_F(AnswerGrammarTest, MarksMayBeSpecialTokens) {
  AnswerGrammarOptions special = options(ToolSyntax::kMistralV11);
  const auto id = tokenizer_->token_to_id("<end>");
  ASSERT_TRUE(id && tokenizer_->is_special(*id));
  special.special_token_id = [&](std::string_view mark) {
    return mark == "[ARGS]" ? id : std::nullopt;
  };
  const std::string grammar = answer_grammar(tools(), special);
  EXPECT_THAT(grammar, HasSubstr("<[" + std::to_string(*id) + "]>"));
  const auto source = start(GrammarKind::kAnswer, grammar);
  ASSERT_TRUE(takes(*source, "[TOOL_CALLS]now"));
  EXPECT_EQ(allowed(*source), std::vector<int>{*id});
}

TEST_F(AnswerGrammarTest, ASpecialTokenEndsProse) {
  const auto tokenizer = make_tokenizer({}, {"[TOOL_CALLS]"});
  GrammarCompiler compiler(tokenizer, {*tokenizer->eos_token_id()});
  AnswerGrammarOptions free = options(ToolSyntax::kMistralV11);
  free.may_hold_prose = true;
  free.special_token_id = [&](std::string_view mark) {
    const auto id = tokenizer->token_to_id(mark);
    return id && tokenizer->is_special(*id) ? id : std::nullopt;
  };
  const auto compiled =
      compiler.compile({.kind = GrammarKind::kAnswer, .text = answer_grammar(tools(), free)});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const auto source = (*compiled)->clone();
  const std::string answer = "so [TOOL_CALLS]now[ARGS]{\"a\": 1} and [TOOL_CALLS]now[ARGS]{} end";
  for (const int id : tokenizer->encode(answer).value()) {
    const std::vector<int> ids = allowed(*source);
    ASSERT_NE(std::find(ids.begin(), ids.end(), id), ids.end()) << id;
    ASSERT_TRUE(source->accept(id).ok());
  }
  const std::vector<int> ids = allowed(*source);
  EXPECT_NE(std::find(ids.begin(), ids.end(), *tokenizer->eos_token_id()), ids.end());
}

TEST_F(AnswerGrammarTest, ASchemaThatIsRefusedIsNamed) {
  const std::vector<ToolDefinition> odd = {
      {.name = "f", .parameters_json = R"({"properties": {"a": {"no-such-keyword": 1}}})"}};
  EXPECT_THAT(refusal(GrammarKind::kAnswer, answer_grammar(odd, options(ToolSyntax::kHermes))),
              HasSubstr("tools_0_arguments: #/properties/a"));
}

// Random texts that the grammar allows must be read as calls alone, with valid JSON as arguments.
TEST_F(AnswerGrammarTest, WhatItTakesIsReadAsCalls) {
  for (const ToolSyntax syntax :
       {ToolSyntax::kHermes, ToolSyntax::kQwenXml, ToolSyntax::kLlama3, ToolSyntax::kPythonic,
        ToolSyntax::kMistral, ToolSyntax::kMistralV11}) {
    const auto compiled = compile(GrammarKind::kAnswer, answer_grammar(tools(), options(syntax)));
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    for (int seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      const auto source = (*compiled)->clone();
      std::vector<int> ids;
      for (bool ended = false; !ended;) {
        const std::vector<int> next = allowed(*source);
        ASSERT_FALSE(next.empty());
        // After 40 tokens the end is chosen if it is allowed, because few random answers would end
        // otherwise.
        const bool may_end = std::find(next.begin(), next.end(), eos()) != next.end();
        ended = may_end && (ids.size() > 40 || next.size() == 1);
        if (ended || ids.size() > 400) break;
        int id = next[random() % next.size()];
        if (id == eos()) break;
        ids.push_back(id);
        ASSERT_TRUE(source->accept(id).ok());
        if (source->is_stopped()) break;
      }
      if (ids.size() > 400) continue;
      const std::string text = tokenizer_->decode(ids, false).value();
      AnswerParser parser({.tool_syntax = syntax,
                           .reads_calls = true,
                           .tools = std::make_shared<const std::vector<ToolDefinition>>(tools())});
      std::vector<AnswerPart> parts = parser.push(text);
      for (AnswerPart& part : parser.finish()) append_part(parts, part.kind, part.text);
      ASSERT_GT(parser.num_calls(), 0) << text;
      for (const AnswerPart& part : parts) {
        ASSERT_NE(part.kind, AnswerPart::Kind::kContent) << text;
        if (part.kind == AnswerPart::Kind::kArguments) {
          EXPECT_TRUE(json::accept(part.text)) << part.text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
