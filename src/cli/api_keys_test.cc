#include "cli/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string refusal(const ApiKeySources& sources) {
  const auto keys = read_api_keys(sources);
  EXPECT_FALSE(keys.ok());
  return keys.ok() ? "" : keys.status().message();
}

class ApiKeyFile : public ::testing::Test {
 protected:
  std::string file_of(const std::string& text) {
    const auto file = std::filesystem::path(folder_.path()) / "keys";
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

  testing::TemporaryFolder folder_;
};

TEST(ApiKeySources, TheEnvironmentIsReadWhereNoFlagIsGiven) {
  EXPECT_THAT(*read_api_keys({}), IsEmpty());
  EXPECT_THAT(*read_api_keys({.environment = "e"}), ElementsAre("e"));
  EXPECT_THAT(*read_api_keys({.flags = {"a", "b"}, .environment = "e"}), ElementsAre("a", "b"));
}

TEST(ApiKeySources, AnEmptyKeyDoesNotOpenTheServer) {
  EXPECT_THAT(refusal({.flags = {""}}), HasSubstr("[--api-key] expected a key, got an empty one"));
  EXPECT_THAT(refusal({.flags = {"good", ""}}), HasSubstr("[--api-key]"));
  EXPECT_THAT(refusal({.environment = ""}), HasSubstr("[PAGODA_API_KEY]"));
}

TEST(ApiKeySources, AKeyFitsAHeaderAndIsNotShown) {
  for (const char* key : {"two words", "line\nend", "caf\xc3\xa9", "tab\t"}) {
    const std::string message = refusal({.flags = {key}});
    EXPECT_THAT(message, HasSubstr("visible ASCII"));
    EXPECT_THAT(message, Not(HasSubstr(key)));
  }
}

TEST_F(ApiKeyFile, HasAKeyALine) {
  EXPECT_THAT(*read_api_keys({.file = file_of("one\r\n\ntwo")}), ElementsAre("one", "two"));
  EXPECT_THAT(*read_api_keys({.flags = {"zero"}, .file = file_of("one\n"), .environment = "e"}),
              ElementsAre("zero", "one"));
  EXPECT_THAT(refusal({.file = file_of("\n\n")}), HasSubstr("expected a key a line, got none"));
  EXPECT_THAT(refusal({.file = file_of("one \n")}), HasSubstr("[--api-key-file]"));
  EXPECT_THAT(refusal({.file = "no/such/file"}), HasSubstr("no/such/file: no such file"));
}

}  // namespace
}  // namespace pagoda
