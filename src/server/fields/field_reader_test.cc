#include "server/fields/field_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

struct Example {
  bool flag = false;
  int count = 3;
  std::optional<int> top;
  std::optional<std::int64_t> seed;
  float share = 0.5f;
  std::optional<float> scale;
  std::string name;
  std::vector<int> ids;
  std::vector<std::string> words;
};

std::vector<Field> table(Example& example) {
  return {{.name = "flag", .target = &example.flag},
          {.name = "count", .target = &example.count, .range = {.minimum = 1, .maximum = 9}},
          {.name = "top", .target = &example.top},
          {.name = "seed", .target = &example.seed},
          {.name = "share",
           .target = &example.share,
           .range = {.minimum = 0, .exclusive_minimum = true, .maximum = 1}},
          {.name = "scale", .target = &example.scale},
          {.name = "name",
           .target = &example.name,
           .size = {.max_chars = 5},
           .description = "A name.",
           .aliases = {"title"}},
          {.name = "ids",
           .target = &example.ids,
           .range = {.minimum = 0},
           .size = {.max_items = 3, .min_items = 1}},
          {.name = "words", .target = &example.words, .size = {.max_chars = 4, .max_items = 3}},
          {.name = "tools", .target = RefusedField{R"(["none", []])", "a plain request"}},
          {.name = "user", .target = IgnoredField{}}};
}

// Reads an Example; returns the error's message, or "" if there was none.
std::string read(const std::string& text, Example* out = nullptr) {
  Example example;
  std::vector<std::string> unknown;
  const auto error = read_fields(parse_ordered_json(text), table(example), unknown);
  if (out != nullptr) *out = example;
  if (!error) return "";
  EXPECT_EQ(error->status, 400);
  EXPECT_FALSE(error->param.empty());
  return error->message;
}

TEST(FieldReader, ReadsEveryType) {
  Example example;
  EXPECT_EQ(
      read(
          R"({"flag": true, "count": 7, "top": -2, "seed": 9223372036854775807, "share": 1, "scale": 1e-3,
                     "name": "x", "ids": [0, 4.0], "words": ["a", ""], "user": {"any": 1}, "tools": []})",
          &example),
      "");
  EXPECT_TRUE(example.flag);
  EXPECT_EQ(example.count, 7);
  EXPECT_EQ(example.top, -2);
  EXPECT_EQ(example.seed, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(example.share, 1.0f);
  EXPECT_EQ(example.scale, 1e-3f);
  EXPECT_EQ(example.name, "x");
  EXPECT_THAT(example.ids, ElementsAre(0, 4));
  EXPECT_THAT(example.words, ElementsAre("a", ""));
}

TEST(FieldReader, NullLeavesTheDefault) {
  Example example;
  EXPECT_EQ(
      read(
          R"({"flag": null, "count": null, "top": null, "ids": null, "tools": null, "user": null})",
          &example),
      "");
  EXPECT_EQ(example.count, 3);
  EXPECT_FALSE(example.top);
}

TEST(FieldReader, RefusesEveryOtherTypeInEveryField) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"flag", "boolean"}, {"count", "number"}, {"top", "number"},
      {"seed", "number"},  {"share", "number"}, {"scale", "number"},
      {"name", "string"},  {"ids", "array"},    {"words", "array"}};
  const std::vector<std::pair<std::string, std::string>> values = {{"boolean", "true"},
                                                                   {"number", "1"},
                                                                   {"string", R"("1")"},
                                                                   {"array", "[[]]"},
                                                                   {"object", "{}"}};
  for (const auto& [name, accepts] : fields) {
    for (const auto& [type, value] : values) {
      if (type == accepts && type != "array") continue;
      const std::string message = read(R"({")" + name + R"(": )" + value + "}");
      EXPECT_TRUE(message.starts_with("'" + name + "': expected "))
          << name << " " << value << ": " << message;
    }
  }
}

TEST(FieldReader, MessagesSayWhatWasExpectedAndWhatCame) {
  EXPECT_EQ(read(R"({"count": "5"})"), "'count': expected an integer, got a string");
  EXPECT_EQ(read(R"({"count": 5.5})"), "'count': expected an integer, got 5.5");
  EXPECT_EQ(read(R"({"count": 10})"),
            "'count': expected a number at least 1 and at most 9, got 10");
  EXPECT_EQ(read(R"({"share": 0})"), "'share': expected a number above 0 and at most 1, got 0");
  EXPECT_EQ(read(R"({"top": 3000000000})"),
            "'top': expected an integer of 32 bits, got 3000000000");
  EXPECT_EQ(read(R"({"seed": 1e19})"), "'seed': expected an integer of 64 bits, got 1e+19");
  EXPECT_EQ(read(R"({"seed": 18446744073709551615})"),
            "'seed': expected an integer of 64 bits, got 1.8446744073709552e+19");
  EXPECT_EQ(read(R"({"scale": 1e300})"), "'scale': 1e+300 is too large");
  EXPECT_EQ(read(R"({"ids": [1, -1]})"), "'ids': expected a number at least 0, got -1");
  EXPECT_EQ(read(R"({"words": ["a", 1]})"), "'words': expected a list of strings, got a number");
  EXPECT_EQ(read(R"({"tools": [1]})"), "'tools' is not supported: a plain request");
  EXPECT_EQ(read(R"({"tools": "none"})"), "");
}

TEST(FieldReader, CollectsUnknownNamesAndAsksForRequiredOnes) {
  Example example;
  std::vector<std::string> unknown;
  auto fields = table(example);
  EXPECT_FALSE(
      read_fields(parse_ordered_json(R"({"zig": 1, "count": 2, "zag": 2})"), fields, unknown));
  EXPECT_THAT(unknown, ElementsAre("zig", "zag"));
  fields[6].required = true;
  EXPECT_EQ(read_fields(parse_ordered_json("{}"), fields, unknown)->message, "'name' is required");
  EXPECT_EQ(read_fields(parse_ordered_json(R"({"name": null})"), fields, unknown)->param, "name");
}

TEST(FieldReader, LengthsAreBounded) {
  EXPECT_EQ(read(R"({"name": "ééééé"})"), "");
  EXPECT_EQ(read(R"({"name": "ééééée"})"), "'name': expected at most 5 characters, got 6");
  EXPECT_EQ(read(R"({"ids": []})"), "'ids': expected at least 1 in the list, got 0");
  EXPECT_EQ(read(R"({"ids": [1, 2, 3, 4]})"), "'ids': expected at most 3 in the list, got 4");
  EXPECT_EQ(read(R"({"words": ["abcde"]})"),
            "'words': expected strings of at most 4 characters, got one of 5");
}

TEST(FieldReader, AnAliasIsTakenAndMustNotContradict) {
  Example example;
  EXPECT_EQ(read(R"({"title": "x"})", &example), "");
  EXPECT_EQ(example.name, "x");
  EXPECT_EQ(read(R"({"title": "x", "name": null})", &example), "");
  EXPECT_EQ(example.name, "x");
  EXPECT_EQ(read(R"({"title": "x", "name": "x"})"), "");
  EXPECT_EQ(read(R"({"title": "x", "name": "y"})"),
            "'name' and 'title' mean the same, but their values differ");
  EXPECT_EQ(read(R"({"title": 1})"), "'title': expected a string, got a number");
}

TEST(FieldReader, RoundingKeepsANumberAboveItsMinimum) {
  Example example;
  EXPECT_EQ(read(R"({"share": 1e-320})", &example), "");
  EXPECT_GT(example.share, 0);
}

TEST(FieldReader, ReadsABodyAndSaysWhyItIsNone) {
  Example example;
  std::vector<std::string> unknown;
  EXPECT_FALSE(read_body_fields(R"({"name": "x", "other": 1})", table(example), unknown));
  EXPECT_EQ(example.name, "x");
  EXPECT_THAT(unknown, ElementsAre("other"));
  EXPECT_EQ(read_body_fields(R"({"name": 1})", table(example), unknown)->param, "name");
  EXPECT_EQ(read_body_fields("{", table(example), unknown)->code, "invalid_json");
}

TEST(FieldReader, DescribesTheSameTable) {
  Example example;
  const json schema = fields_schema(table(example));
  const json& properties = schema.at("properties");
  EXPECT_EQ(
      properties.at("count"),
      parse_json(R"({"type": ["integer", "null"], "minimum": 1, "maximum": 9, "default": 3})"));
  EXPECT_EQ(properties.at("top"),
            parse_json(
                R"({"type": ["integer", "null"], "minimum": -2147483648, "maximum": 2147483647})"));
  EXPECT_EQ(properties.at("share").at("exclusiveMinimum"), 0);
  EXPECT_EQ(properties.at("name").at("description"), "A name.");
  EXPECT_EQ(properties.at("title").at("maxLength"), 5);
  EXPECT_EQ(properties.at("tools").at("enum"), parse_json(R"(["none", [], null])"));
  EXPECT_EQ(properties.at("ids").at("maxItems"), 3);
  EXPECT_FALSE(schema.contains("required"));
}

}  // namespace
}  // namespace pagoda
