#include "cli/flags/prompt_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

TEST(PromptSpec, ASchemaIsTextOrAFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "schema.json";
  std::ofstream(file) << R"({"type": "object"})";
  const auto read = [](const std::string& given) {
    PromptSpec spec = {.json_schema = given};
    const Status status = read_named_files(spec);
    return status.ok() ? *spec.json_schema : status.message();
  };
  EXPECT_EQ(read(file), R"({"type": "object"})");
  for (const char* schema : {R"({"type": "object"})", " {}", "true", "false"})
    EXPECT_EQ(read(schema), schema);
  EXPECT_THAT(read("no/such.json"), HasSubstr("--json-schema: expected a schema in JSON, or a file "
                                              "with one, got no/such.json"));
}

}  // namespace
}  // namespace pagoda
