#include "answer/json_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include "core/json.h"

namespace pagoda {
namespace {

struct Scanned {
  std::string text;
  bool has_ended = false;
  bool is_valid = false;
};

// Reads a text up to its end.
Scanned scan(std::string_view text) {
  JsonScanner scanner;
  Scanned result;
  for (const char c : text) {
    result.has_ended = scanner.feed(c, result.text);
    if (result.has_ended) break;
  }
  result.is_valid = scanner.is_valid();
  return result;
}

TEST(JsonScanner, FindsTheEnd) {
  for (const std::string text :
       {"{}", "[]", R"("a\"}")", R"({"a": [1, {"b": "]}"}], "c": null})"}) {
    const Scanned scanned = scan(text + "} more");
    EXPECT_TRUE(scanned.has_ended && scanned.is_valid) << text;
    EXPECT_EQ(scanned.text, text);
  }
  EXPECT_FALSE(scan(R"({"a": ")").has_ended);
  EXPECT_TRUE(scan(R"({"a": ")").is_valid);
}

TEST(JsonScanner, TextThatIsNoJsonEndsWithItsBrackets) {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {"{a}"s, "{'a': [x}}"s, "[NaN]"s, "{\"a\": 1,}"s, "[1,,2]"s, "[1 2]"s, "[2\0001]"s,
        "[\xef\xbb\xbf"
        "1]"s}) {
    const Scanned scanned = scan(text + " more");
    EXPECT_TRUE(scanned.has_ended) << text;
    EXPECT_FALSE(scanned.is_valid) << text;
    EXPECT_EQ(scanned.text, text);
  }
}

TEST(JsonScanner, ControlCharactersOfStringsAreEscaped) {
  EXPECT_EQ(scan("{\n\"a\": \"b\n\x1f\"\t}").text, "{\n\"a\": \"b\\n\\u001f\"\t}");
}

// 20,000 seeds: a text that ends is valid only if the whole of it is JSON.
TEST(JsonScanner, AgreesWithAParser) {
  const std::string_view pieces[] = {"{",     "}",     "[", "]",          ",",    ":",
                                     "\"a\"", "\"b\"", "1", "-2",         "1e+5", "true",
                                     "nul",   "false", " ", "\"\\u00e9\""};
  int num_valid = 0;
  for (int seed = 0; seed < 20'000; ++seed) {
    std::mt19937 random(seed);
    std::string text = seed % 2 == 0 ? "{\"a\":" : "[";
    for (int i = 0; i < 6; ++i) text += pieces[random() % std::size(pieces)];
    text += seed % 2 == 0 ? "}" : "]";
    const Scanned scanned = scan(text);
    if (!scanned.has_ended) continue;
    EXPECT_EQ(scanned.is_valid, nlohmann::json::accept(scanned.text)) << "seed " << seed << text;
    num_valid += scanned.is_valid ? 1 : 0;
  }
  EXPECT_GT(num_valid, 20);
}

}  // namespace
}  // namespace pagoda
