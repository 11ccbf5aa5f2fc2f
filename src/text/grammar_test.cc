#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <regex>

#include "core/json.h"
#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(GrammarTest, ChoicesAreAllThatCanBeSaid) {
  const std::string choices = R"(["abc", "ab c", "10"])";
  auto source = start(GrammarKind::kChoice, choices);
  std::vector<std::string> first;
  for (const int id : allowed(*source)) first.push_back(tokenizer_->token_bytes(id).value());
  EXPECT_THAT(first, ::testing::UnorderedElementsAre("a", "ab", "1", "10"));
  for (const char* choice : {"abc", "ab c", "10"})
    EXPECT_TRUE(takes_whole(GrammarKind::kChoice, choices, choice));
  EXPECT_FALSE(takes_whole(GrammarKind::kChoice, choices, "ab"));
  EXPECT_FALSE(takes_whole(GrammarKind::kChoice, choices, "abcd"));
}

TEST_F(GrammarTest, AChoiceMayHoldAnyCharacter) {
  for (int c = 1; c < 0x80; ++c) {
    const std::string text = {'x', static_cast<char>(c)};
    EXPECT_TRUE(takes_whole(GrammarKind::kChoice, nlohmann::json({text}).dump(), text)) << c;
  }
  const std::string del = "root ::= \"x\x7f\"";
  EXPECT_TRUE(takes_whole(GrammarKind::kContextFree, del, "x\x7f"));
}

// Dropping the character would give an answer that the schema does not allow.
TEST_F(GrammarTest, ACharacterThatCannotBeSaidIsNotLeftOut) {
  for (const char* schema :
       {R"({"const": "x\u0001y"})", R"({"enum": ["a", "x\u007f"]})", R"({"const": [["\u0000"]]})",
        R"({"pattern": "^x\u0001y$"})", R"({"pattern": "^x\\x7fy$"})",
        R"({"pattern": "^[a]\\u{1f}"})", R"({"pattern": "a\\vb"})"}) {
    EXPECT_THAT(refusal(GrammarKind::kJsonSchema, schema), HasSubstr("the control character U+00"))
        << schema;
  }
  const std::string said = R"("\"\\\b\f\n\r\té")";
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema, R"({"const": )" + said + "}", said));
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema,
                          R"({"type": "string", "pattern": "^[^\\x00-\\x1f]{2}\\n$"})",
                          R"("ab\n")"));
}

TEST_F(GrammarTest, StopsWhereNothingMayFollow) {
  auto source = start(GrammarKind::kRegex, "a{2,3}");
  EXPECT_TRUE(takes(*source, "aa"));
  EXPECT_FALSE(source->is_stopped());
  EXPECT_TRUE(may_end(*source));
  EXPECT_TRUE(takes(*source, "a"));
  EXPECT_TRUE(source->is_stopped());
}

TEST_F(GrammarTest, EndsByTheEndOfSequence) {
  auto source = start(GrammarKind::kRegex, "a+");
  EXPECT_FALSE(may_end(*source));
  EXPECT_TRUE(takes(*source, "a"));
  EXPECT_TRUE(may_end(*source));
  EXPECT_TRUE(source->accept(eos()).ok());
  EXPECT_TRUE(source->is_stopped());
}

TEST_F(GrammarTest, SaysNoToWhatIsNotAllowed) {
  auto source = start(GrammarKind::kRegex, "a+");
  EXPECT_EQ(source->accept(tokenizer_->encode("b").value().front()).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(GrammarTest, ErrorsNameTheFieldThatAsked) {
  const auto source =
      compiler_.compile({.kind = GrammarKind::kRegex, .text = "a+", .asked_by = "response_format"});
  ASSERT_TRUE(source.ok()) << source.status().message();
  const Status status = (*source)->clone()->accept(tokenizer_->encode("b").value().front());
  EXPECT_THAT(status.message(), StartsWith("'response_format': the grammar cannot be followed"));
  const auto refused = compiler_.compile({.text = "5", .asked_by = "json_schema"});
  EXPECT_THAT(refused.status().message(), StartsWith("'json_schema': #: expected a schema"));
}

TEST_F(GrammarTest, WhiteSpaceIsBoundedOffOrByAPattern) {
  const auto takes = [this](std::string_view white_space, std::string_view answer) {
    const auto source = compiler_.compile(
        {.text = R"({"type": "array"})", .white_space = std::string(white_space)});
    EXPECT_TRUE(source.ok()) << source.status().message();
    const auto state = (*source)->clone();
    return GrammarTest::takes(*state, answer) && (state->is_stopped() || may_end(*state));
  };
  const std::string by_default(kJsonWhiteSpace);
  EXPECT_TRUE(takes(by_default, R"([1, [2,{"a": 3,"b":4}]])"));
  for (const char* text : {"[1,  2]", "[1,\n2]", "[1 ,2]", "[ 1]", "[1 ]", R"([{"a" :1}])", " []"})
    EXPECT_FALSE(takes(by_default, text)) << text;
  EXPECT_TRUE(takes("", "[1,[2]]"));
  EXPECT_FALSE(takes("", "[1, 2]"));
  EXPECT_TRUE(takes(" {0,2}", "[1,  2]"));
  EXPECT_FALSE(takes(" {0,2}", "[1,   2]"));
  EXPECT_TRUE(takes(R"([\s]?)", "[1,\n2]"));
  for (const char* wrong : {"a", "[^ ]", ".", "\\d", "1", " |\"", "( ", "\\x41", "\xff"}) {
    const auto refused = compiler_.compile({.text = "{}", .white_space = wrong});
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

TEST_F(GrammarTest, ClonesGoTheirOwnWays) {
  auto source = start(GrammarKind::kRegex, "ab|ac");
  EXPECT_TRUE(takes(*source, "a"));
  auto other = source->clone();
  EXPECT_TRUE(takes(*source, "b"));
  EXPECT_FALSE(other->is_stopped());
  EXPECT_TRUE(takes(*other, "c"));
}

TEST_F(GrammarTest, SchemasHoldNestedObjectsInTheirOrder) {
  const std::string schema = R"({"type": "object", "properties": {"b": {"type": "integer"},
      "a": {"type": "array", "items": {"$ref": "#/$defs/c"}, "maxItems": 2}},
      "required": ["b", "a"], "additionalProperties": false,
      "$defs": {"c": {"enum": ["x", null]}}})";
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"b": -1, "a": ["x", null]})"));
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"b":10,"a": []})"));
  EXPECT_FALSE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"a": [], "b": 1})"));
  EXPECT_FALSE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"b": 1, "a": ["y"]})"));
  EXPECT_FALSE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"b":  1, "a": []})"));
}

// Python and JavaScript accept such escapes, so /openapi.json declares such a request valid.
TEST_F(GrammarTest, ARegexMayEscapeAnyCharacterBeyondAscii) {
  EXPECT_TRUE(takes_whole(GrammarKind::kRegex, R"(\Ð[\é]\\\d)", R"(Ðé\7)"));
  EXPECT_FALSE(takes_whole(GrammarKind::kRegex, R"(\\Ð)", "Ð"));
  EXPECT_THAT(refusal(GrammarKind::kRegex, "a\\"), StartsWith("[grammar] "));
}

TEST_F(GrammarTest, NamesHaveOneSpelling) {
  const std::string schema =
      R"({"properties": {"ab": {"type": "integer"}}, "additionalProperties": true})";
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"ab": 1, "c": true})"));
  EXPECT_FALSE(takes_whole(GrammarKind::kJsonSchema, schema, R"({"\u0061b": true})"));
}

TEST_F(GrammarTest, MasksStayTheSameHoweverOftenTheirStatesAreSeen) {
  const std::string strings = R"({"type": "array", "items": {"type": "string", "maxLength": 7}})";
  const std::string words = "start: WORD NUM WORD\nWORD: /[a-c]{1,5}/\nNUM: /[0-9]{1,2}/";
  const auto check = [&](GrammarKind kind, const std::string& text, const char* answer) {
    const auto often = compile(kind, text);
    ASSERT_TRUE(often.ok()) << often.status().message();
    for (int i = 0; i < 4; ++i) {
      const auto source = (*often)->clone();
      const auto fresh = start(kind, text);
      for (const int id : tokenizer_->encode(answer).value()) {
        EXPECT_EQ(allowed(*source), allowed(*fresh)) << answer << ' ' << i;
        ASSERT_TRUE(source->accept(id).ok() && fresh->accept(id).ok()) << answer;
      }
      EXPECT_EQ(source->is_stopped() || may_end(*source), fresh->is_stopped() || may_end(*fresh));
    }
  };
  check(GrammarKind::kJsonSchema, strings, R"(["abcabca", "é", "a\"b", "abca)");
  check(GrammarKind::kContextFree, words, "abcab10ab");
  check(GrammarKind::kRegex, "[a-z ]{3,9}", "abc ab ab");
  check(GrammarKind::kRegex, "(?s:.){0,12}", "ab10\n\"\"é");
}

TEST_F(GrammarTest, DatesAreThoseOfTheCalendar) {
  const auto is_valid = [&](const char* schema, const std::string& date) {
    return takes_whole(GrammarKind::kJsonSchema, schema, '"' + date + '"');
  };
  constexpr const char* kDate = R"({"format": "date", "type": "string"})";
  constexpr const char* kTime = R"({"type": "string", "format": "date-time"})";
  for (int year : {4, 96, 100, 400, 1600, 1900, 1996, 1998, 2000, 2023, 2024, 2100, 2400, 9996}) {
    const std::chrono::year_month_day last{std::chrono::year(year) / std::chrono::February / 29};
    const std::string date = fmt::format("{:04}-02-29", year);
    EXPECT_EQ(is_valid(kDate, date), last.ok()) << date;
    EXPECT_EQ(is_valid(kTime, date + "T10:00:00Z"), last.ok()) << date;
  }
  for (const char* date : {"1900-02-28", "2023-01-29", "2023-09-29", "2023-10-29", "2023-12-31"}) {
    EXPECT_TRUE(is_valid(kDate, date)) << date;
    EXPECT_TRUE(is_valid(kTime, date + std::string("t23:59:60.5+01:00"))) << date;
  }
  for (const char* date : {"2023-02-30", "2023-04-31", "2023-13-01", "2023-00-01", "2023-01-00"}) {
    EXPECT_FALSE(is_valid(kDate, date)) << date;
    EXPECT_FALSE(is_valid(kTime, date + std::string("T10:00:00Z"))) << date;
  }
  constexpr const char* kOfThe20th =
      R"({"format": "date", "pattern": "^20", "allOf": [{"maxLength": 10}]})";
  EXPECT_TRUE(is_valid(kOfThe20th, "2024-02-29"));
  EXPECT_FALSE(is_valid(kOfThe20th, "2023-02-29"));
  EXPECT_FALSE(is_valid(kOfThe20th, "1996-02-29"));
  EXPECT_THAT(refusal(GrammarKind::kJsonSchema, R"({"format": "date", "const": "1900-02-29"})"),
              StartsWith("[grammar] "));
}

TEST_F(GrammarTest, LarkGrammarsRecurse) {
  const std::string grammar = "start: \"(\" start \")\" | /[0-9]/";
  EXPECT_TRUE(takes_whole(GrammarKind::kContextFree, grammar, "((7))"));
  EXPECT_FALSE(takes_whole(GrammarKind::kContextFree, grammar, "((7)"));
}

TEST_F(GrammarTest, GbnfGrammarsAreTaken) {
  const std::string grammar = R"gbnf(# a comment
      root ::= item ("," ws item){1,2} | [^a-z\-"é,]+  # "not this"
      item ::= "\x41\"" | nested-item
        | "\u00e9"
      nested-item ::= "(" item ")"
      ws ::= [ \t]*)gbnf";
  const auto takes = [&](std::string_view answer) {
    return takes_whole(GrammarKind::kContextFree, grammar, answer);
  };
  EXPECT_TRUE(takes("A\",\t(A\")"));
  EXPECT_TRUE(takes("é,é,((é))"));
  EXPECT_TRUE(takes("-A1") == false && takes("A1"));
  EXPECT_FALSE(takes("é"));
  EXPECT_FALSE(takes("A\","));
  EXPECT_FALSE(takes("é,é,é,é"));
}

TEST_F(GrammarTest, RandomWalksEndInWhatTheSchemaSays) {
  const std::string schema = R"({"type": "object", "properties": {
      "name": {"type": "string", "minLength": 1, "maxLength": 8},
      "tags": {"type": "array", "items": {"enum": ["é", "\"", 10]}, "minItems": 1, "maxItems": 3},
      "next": {"anyOf": [{"type": "null"}, {"type": "boolean"}, {"type": "integer", "minimum": -3,
        "maximum": 12}]}}, "required": ["name", "tags", "next"], "additionalProperties": false})";
  const auto compiled = compile(GrammarKind::kJsonSchema, schema);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  std::mt19937 random(20261120);
  int num_ended = 0;
  for (int i = 0; i < 100; ++i) {
    const auto source = (*compiled)->clone();
    const auto text = random_text(*source, random);
    if (!text) continue;
    ++num_ended;
    const auto value = parse_ordered_json(*text);
    ASSERT_TRUE(value.is_object()) << *text;
    ASSERT_EQ(value.size(), 3u) << *text;
    ASSERT_FALSE(value["name"].get<std::string>().empty());
    ASSERT_TRUE(!value["tags"].empty() && value["tags"].size() <= 3) << *text;
    for (const auto& tag : value["tags"])
      ASSERT_TRUE(tag == "é" || tag == "\"" || tag == 10) << *text;
    const auto& next = value["next"];
    ASSERT_TRUE(next.is_null() || next.is_boolean() || (next >= -3 && next <= 12)) << *text;
  }
  EXPECT_GT(num_ended, 80);
}

TEST_F(GrammarTest, WrongSchemasAreRefusedWithTheirPlaceAndReason) {
  const auto refusal_of = [this](const char* schema) {
    return refusal(GrammarKind::kJsonSchema, schema);
  };
  EXPECT_THAT(refusal_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("5"), HasSubstr("expected a schema"));
  EXPECT_THAT(refusal_of("false"), HasSubstr("false allows no answer"));
  EXPECT_THAT(refusal_of(R"({"type": "strin"})"), HasSubstr("strin"));
  EXPECT_THAT(refusal_of(R"({"properties": {"a": {"not": {"pattern": "b"}}}})"),
              HasSubstr("#/properties/a/not: no opposite of 'pattern' is known"));
  EXPECT_THAT(refusal_of(R"({"anyOf": [{"minLenght": 3}]})"), HasSubstr("#/anyOf/0: the keyword"));
  EXPECT_THAT(refusal_of(R"({"x-guidance": {"lenient": true}})"), HasSubstr("x-guidance"));
  EXPECT_THAT(refusal_of(R"({"type": "array", "uniqueItems": true})"), HasSubstr("uniqueItems"));
  EXPECT_THAT(refusal_of(R"({"$ref": "#/$defs/x"})"), HasSubstr("$ref"));
  for (const char* circle : {R"({"$ref": "#"})", R"({"allOf": [{"$ref": "#"}]})",
                             R"({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]})",
                             R"({"oneOf": [{"$ref": "#"}]})", R"({"not": {"$ref": "#"}})"})
    EXPECT_THAT(refusal_of(circle),
                HasSubstr("#: expected a schema behind '$ref', got references"));
  EXPECT_THAT(refusal_of(R"({"properties": {"a": {"$ref": "#/$defs/b"}},
                             "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/b"}}})"),
              HasSubstr("#/$defs/b: expected a schema behind '$ref'"));
  EXPECT_THAT(refusal_of(R"({"$ref": "https://example.com/s"})"), HasSubstr("$ref"));
  EXPECT_THAT(refusal_of(R"({"default": {"minLenght": 1}, "$ref": "#/default"})"),
              HasSubstr("$ref"));
  EXPECT_THAT(refusal_of(R"({"properties": {"a": {"$id": "x", "$ref": "#"}}})"), HasSubstr("$id"));
  EXPECT_THAT(refusal_of(R"({"const": 9007199254740993})"), HasSubstr("2^53"));
  EXPECT_THAT(refusal_of(R"({"multipleOf": 0})"), HasSubstr("multipleOf"));
  EXPECT_THAT(refusal_of(R"({"type": "object", "minProperties": 3})"), HasSubstr("minProperties"));
  EXPECT_THAT(refusal_of(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})"),
              HasSubstr("oneOf"));
  EXPECT_THAT(refusal_of(R"({"type": "integer", "minimum": 5, "maximum": 4})"),
              StartsWith("[grammar] "));
  EXPECT_EQ(refusal_of(R"({"properties": {"a": {"type": "string", "pattern": "(?=a)b"}}})"),
            "[grammar] #/properties/a: look-around, including look-ahead and look-behind, is not "
            "supported, at '(?='");
  EXPECT_THAT(refusal_of(R"({"type": "string", "minLength": -1})"), HasSubstr("minLength"));
  EXPECT_THAT(refusal_of(R"({"type": "string", "minLength": "1"})"), HasSubstr("minLength"));
}

TEST_F(GrammarTest, ReferencesToTheSchemaItselfAreTaken) {
  const char* lists = R"({"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]})";
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema, lists, "[[], [[]]]"));
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema,
                          R"({"properties": {"a": {"$ref": "#/$defs/b"}},
                              "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#"}}})",
                          R"({"a": {"a": {}}})"));
}

TEST_F(GrammarTest, NeutralAndAnnotatingKeywordsChangeNothing) {
  EXPECT_TRUE(takes_whole(GrammarKind::kJsonSchema,
                          R"({"$id": "a", "title": "b", "type": "array", "uniqueItems": false,
                              "x-order": 1, "items": {"description": "c", "const": 10}})",
                          "[10, 10]"));
}

TEST_F(GrammarTest, WrongGrammarsAreRefused) {
  EXPECT_EQ(refusal(GrammarKind::kRegex, "("), "[grammar] invalid regex: unclosed group, at '('");
  EXPECT_EQ(refusal(GrammarKind::kRegex, "é[a"),
            "[grammar] invalid regex: unclosed character class, at '['");
  EXPECT_THAT(refusal(GrammarKind::kRegex, "\\bfoo"), StartsWith("[grammar] invalid regex: look"));
  EXPECT_EQ(refusal(GrammarKind::kRegex, ""),
            "[grammar] expected a regular expression, got an empty text");
  EXPECT_THAT(refusal(GrammarKind::kRegex, "\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(GrammarKind::kChoice, "[]"), HasSubstr("at least one"));
  EXPECT_THAT(refusal(GrammarKind::kChoice, R"([""])"), HasSubstr("none empty"));
  EXPECT_THAT(refusal(GrammarKind::kChoice, "[1]"), HasSubstr("strings"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "root ::= other"), HasSubstr("'other'"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "rot ::= \"a\""), HasSubstr("'root'"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "root ::= \"a"), HasSubstr("no end"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "root ::= [a"), HasSubstr("no end"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "root ::= \"a\" root ::= \"b\""),
              HasSubstr("twice"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "root ::= \"\\q\""), HasSubstr("\\q"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "start: other"), HasSubstr("other"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "start: %json {}"), HasSubstr("%json"));
  EXPECT_THAT(refusal(GrammarKind::kContextFree, "start: a\na[temperature=0.5]: /b/"),
              HasSubstr("temperature"));
  EXPECT_THAT(refusal(GrammarKind::kRegex, std::string(2 << 20, 'a')), HasSubstr("bytes"));
}

}  // namespace
}  // namespace pagoda
