// Requests whose objects have a hundred thousand names take about as long as parsing their text.
#include <gtest/gtest.h>

#include <string>

#include "core/json.h"
#include "tests/support/api_client.h"
#include "tests/support/seconds_of.h"

namespace pagoda {
namespace {

// Returns an object of many members, whose keys are not in sorted order.
std::string object_of_many(std::string_view value) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i)
    text += fmt::format("{}\"{}\": {}", i > 0 ? "," : "", i * 7919LL % 1'000'003, value);
  return text + "}";
}

// Comparing each key with all earlier ones would take thousands of times as long.
TEST(ManyNames, StopNobody) {
  const std::string metadata = object_of_many("1");
  const std::string tool =
      R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": )" +
      object_of_many("{}") + "}}}";
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "say a"}], "tools": [)" + tool + "]";
  ApiClient client({.max_model_len = 8'000'000});
  const double limit_s =
      1 + 200 * testing::seconds_of([&] { EXPECT_TRUE(parse_json(tool).is_object()); });
  EXPECT_LT(testing::seconds_of([&] {
              client.answer(
                  "/v1/completions",
                  R"({"prompt": "say a", "response_format": {"type": "text"}, "metadata": )" +
                      metadata + "}");
            }),
            limit_s);
  EXPECT_LT(testing::seconds_of([&] { client.answer("/v1/chat/completions", chat + "}"); }),
            limit_s);
  EXPECT_LT(testing::seconds_of([&] {
              client.refusal("/v1/chat/completions", chat + R"(, "tool_choice": "required"})");
            }),
            limit_s);
}

}  // namespace
}  // namespace pagoda
