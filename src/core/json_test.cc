#include "core/json.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda {
namespace {

std::string fault(const std::string& text) {
  return parse_json_file(text, "config.json").status().message();
}

TEST(Json, AFileThatIsNoneSaysWhere) {
  EXPECT_EQ(fault("{\n  \"a\": nope\n}"),
            "config.json: expected JSON, got something else at line 2, column 9");
  EXPECT_EQ(fault("{\"a\": 1,}"),
            "config.json: expected JSON, got something else at line 1, column 9");
  EXPECT_EQ(fault("{\n"), "config.json: expected JSON, got something else at line 2, column 1");
  EXPECT_EQ(fault(""), "config.json: expected JSON, got something else at line 1, column 1");
  EXPECT_EQ(fault("{\n  \"a\": 1e706, \"b\": 2}"),
            "config.json: expected JSON, got a number beyond the range of a double at line 2, "
            "column 8");
  EXPECT_EQ(fault("[1]"), "config.json: expected a JSON object, got array");
  EXPECT_TRUE(parse_json_file("\xef\xbb\xbf{}", "config.json").ok());
}

}  // namespace
}  // namespace pagoda
