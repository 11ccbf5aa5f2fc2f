#include "server/base/json_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

std::string refusal(std::string_view body) {
  const auto parsed = parse_json_body(body);
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.error().status, 400);
  return parsed.error().message;
}

TEST(JsonBody, ReadsAnObject) {
  const auto parsed = parse_json_body(R"({"a": [1, "\u00e9"], "b": {"c": null}})");
  EXPECT_EQ(parsed->at("a").at(1), "é");
}

TEST(JsonBody, NamesWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal(R"({"a": 1,})"), "the body is not valid JSON at byte 8");
  EXPECT_EQ(refusal(""), "the body is not valid JSON at byte 0");
  EXPECT_EQ(refusal(R"({"a": NaN})"), "the body is not valid JSON at byte 6");
  EXPECT_EQ(refusal(R"({"a": 1} x)"), "the body is not valid JSON at byte 9");
  EXPECT_EQ(refusal(R"({"a": "\ud800"})"), "the body is not valid JSON at byte 13");
  EXPECT_EQ(refusal(R"({"a": 1e999})"), "the body is not valid JSON: a number is out of range");
  EXPECT_EQ(refusal("[1]"), "the body: expected a JSON object, got array");
  EXPECT_EQ(refusal("{\"a\": \"\xff\"}"), "the body is not valid UTF-8 at byte 7");
}

TEST(JsonBody, BoundsItsDepthAndNotItsBreadth) {
  const auto nested = [](int depth) {
    return R"({"a": )" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(refusal(nested(kMaxJsonDepth)), "accepted");
  EXPECT_EQ(refusal(nested(kMaxJsonDepth + 1)), "the body nests deeper than 64 levels at byte 69");
  EXPECT_NE(refusal(std::string(10'000'000, '[')), "accepted");
  EXPECT_EQ(refusal(R"({"a": ")" + std::string(1000, '[') + R"(\"["})"), "accepted");
  std::string broad = R"({"a": [[])";
  for (int i = 0; i < 1000; ++i) broad += ",[]";
  EXPECT_EQ(refusal(broad + "]}"), "accepted");
}

TEST(JsonBody, BoundsWhatItsValuesTakeInMemory) {
  const auto listed = [](std::string_view value, std::size_t count) {
    std::string body = R"({"a": [)";
    for (std::size_t i = 0; i < count; ++i) (body += value) += ',';
    return body + "0]}";
  };
  const std::size_t around = 3 * 96;  // the object, its name and the list
  const std::size_t num_numbers = (kMaxJsonBytes - around) / 32;
  EXPECT_EQ(refusal(listed("7", num_numbers)), "accepted");
  EXPECT_EQ(refusal(listed("7", num_numbers + 1)),
            "the body: expected values that take at most 67108864 bytes of memory, got more at "
            "byte " +
                std::to_string(7 + 2 * num_numbers + 1));
  for (const std::string_view value : {"{}", "[]", R"("")"}) {
    EXPECT_THAT(refusal(listed(value, (kMaxJsonBytes - around) / 128 + 1)),
                testing::StartsWith("the body: expected values that take at most 67108864 bytes"));
  }
  // A comma in a string separates no values.
  EXPECT_EQ(refusal(R"({"a": ")" + std::string(16 << 20, ',') + R"("})"), "accepted");
}

}  // namespace
}  // namespace pagoda
