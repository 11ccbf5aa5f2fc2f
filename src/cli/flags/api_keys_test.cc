#include "cli/flags/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Matches a key by the text that a client sends, and by its name.
auto is_key(const std::string& key, const std::string& name = "") {
  return AllOf(Field(&ApiKey::digest, sha256(key)), Field(&ApiKey::name, name));
}

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
  EXPECT_THAT(*read_api_keys({.environment = "e"}), ElementsAre(is_key("e")));
  EXPECT_THAT(*read_api_keys({.flags = {"a", "b"}, .environment = "e"}),
              ElementsAre(is_key("a"), is_key("b")));
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
  EXPECT_THAT(*read_api_keys({.file = file_of("one\r\n\ntwo")}),
              ElementsAre(is_key("one"), is_key("two")));
  EXPECT_THAT(*read_api_keys({.flags = {"zero"}, .file = file_of("one\n"), .environment = "e"}),
              ElementsAre(is_key("zero"), is_key("one")));
  EXPECT_THAT(refusal({.file = file_of("\n# none\n")}),
              HasSubstr("expected a key a line, got none"));
  EXPECT_THAT(refusal({.file = "no/such/file"}), HasSubstr("no/such/file: no such file"));
}

TEST_F(ApiKeyFile, NamesKeysAndTakesTheirDigests) {
  const std::string digest = to_hex(sha256("secret"));
  std::string upper = to_hex(sha256("other"));
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string text = "# who asks\n  alice   one \nalice\ttwo\nbob sha256:" + digest +
                           "\n \nsha256:" + upper + "\n  # the end";
  EXPECT_THAT(*read_api_keys({.file = file_of(text)}),
              ElementsAre(is_key("one", "alice"), is_key("two", "alice"), is_key("secret", "bob"),
                          is_key("other")));
  EXPECT_THAT(*read_api_keys({.flags = {"sha256:" + digest}}), ElementsAre(is_key("secret")));
}

TEST_F(ApiKeyFile, AnErrorNamesTheLineAndNotTheKey) {
  const std::string digest = to_hex(sha256("secret"));
  const std::vector<std::string> malformed = {"alice secret more",
                                              "sha256:" + digest + " secret",
                                              "sha256:secret",
                                              "alice sha256:" + digest.substr(1),
                                              "alice sha256:" + digest + "secret",
                                              "alice sha256:+" + digest.substr(1),
                                              "secr\xc3\xa9t",
                                              "alic\xc3\xa9 secret",
                                              "alice secret\x7f",
                                              "bob known",
                                              "known",
                                              "sha256:" + digest + "  -",
                                              "alice sha256:" + to_hex(sha256(""))};
  for (const std::string& line : malformed) {
    const std::string message = refusal({.file = file_of("alice known\n\n" + line + "\n")});
    EXPECT_THAT(message, HasSubstr("keys:3] ")) << line;
    EXPECT_THAT(message, Not(HasSubstr("secr"))) << line;
    EXPECT_THAT(message, Not(HasSubstr(digest.substr(1)))) << line;
    EXPECT_THAT(message, Not(HasSubstr("known"))) << line;
  }
}

}  // namespace
}  // namespace pagoda
