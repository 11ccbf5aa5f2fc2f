#include "cli/flags/flag_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>

#include "cli/command_line.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class FlagSourcesTest : public ::testing::Test {
 protected:
  FlagSourcesTest() { add_commands(app_, body_); }

  Result<std::vector<std::string>> expanded(std::vector<std::string> arguments) {
    return with_other_sources(app_, std::move(arguments), [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string file_with(const std::string& text) {
    const std::string file = folder_ / "pagoda.toml";
    std::ofstream(file) << text;
    return file;
  }

  testing::TemporaryFolder folder_;
  CLI::App app_{"", "pagoda"};
  CommandBody body_;
  std::map<std::string, std::string> variables_;
};

TEST_F(FlagSourcesTest, VariablesAreFlags) {
  variables_ = {{"PAGODA_PORT", "8080"},
                {"PAGODA_ALLOWED_HOSTS", "a.example,b.example"},
                {"PAGODA_ENABLE_PREFIX_CACHING", "true"},
                {"PAGODA_UNKNOWN", "x"}};
  EXPECT_THAT(*expanded({"serve", "m.gguf"}),
              IsSupersetOf({"serve", "m.gguf", "--port=8080", "--allowed-hosts=a.example",
                            "--allowed-hosts=b.example"}));
  EXPECT_THAT(*expanded({"serve", "m.gguf", "--port", "9000"}),
              ::testing::Not(Contains("--port=8080")));
}

TEST_F(FlagSourcesTest, AFileHasALineAFlag) {
  const std::string file = file_with(
      "# comment\nport = 8080\nmax-queue = \"2k\"\nallowed-origins = [\"https://a\", "
      "\"https://b\"]\n");
  variables_ = {{"PAGODA_MAX_QUEUE", "3"}};
  EXPECT_THAT(*expanded({"serve", "m.gguf", "--config", file}),
              ElementsAre("serve", "m.gguf", "--config", file, "--max-queue=3", "--port=8080",
                          "--allowed-origins=https://a", "--allowed-origins=https://b"));
}

TEST_F(FlagSourcesTest, ErrorsNameTheSource) {
  EXPECT_THAT(expanded({"serve", "m", "--config=" + file_with("prot = 1\n")}).status().message(),
              HasSubstr("pagoda.toml: 'prot' is no flag of pagoda serve"));
  EXPECT_THAT(
      expanded({"serve", "m", "--config=" + file_with("[serve]\nport = 1\n")}).status().message(),
      HasSubstr("pagoda.toml: 'serve.port' is no flag of pagoda serve"));
  EXPECT_THAT(expanded({"serve", "m", "--config", "/no/such/file"}).status().message(),
              HasSubstr("/no/such/file"));
  variables_ = {{"PAGODA_PORT", ""}};
  EXPECT_THAT(expanded({"serve", "m"}).status().message(),
              HasSubstr("PAGODA_PORT: expected a value"));
}

TEST_F(FlagSourcesTest, OtherCommandsHaveTheirLineAlone) {
  variables_ = {{"PAGODA_THREADS", "1"}};
  EXPECT_THAT(*expanded({"run", "m.gguf"}), ElementsAre("run", "m.gguf"));
  EXPECT_THAT(*expanded({}), ElementsAre());
}

TEST_F(FlagSourcesTest, AFileMayBeginWithAByteOrderMark) {
  const std::string file = file_with("\xef\xbb\xbfport = 8080\n");
  EXPECT_THAT(*expanded({"serve", "m.gguf", "--config", file}), Contains("--port=8080"));
}

TEST_F(FlagSourcesTest, MistypedVariablesAreTold) {
  // Among them are variables that Kubernetes sets for a service named pagoda, and the tests' own.
  const char* const variables[] = {"HOME=/root",
                                   "PAGODA_PORT=8080",
                                   "PAGODA_NUM_GPU_BLOCKS_OVERRIDE=1",
                                   "PAGODA_MODEL_DIR=/x",
                                   "PAGODA_SERVICE_HOST=10.0.0.1",
                                   "PAGODA_SERVICE_PORT=8000",
                                   "PAGODA_PORT_8000_TCP_ADDR=10.0.0.1",
                                   "PAGODA_BINARY=/x",
                                   "PAGODA_SOURCE_DIR=/x",
                                   "PAGODA_PROT=1",
                                   nullptr};
  EXPECT_THAT(mistyped_variables(app_, variables),
              ElementsAre("PAGODA_PROT: nothing reads this variable of the environment; did you "
                          "mean PAGODA_PORT?"));
}

}  // namespace
}  // namespace pagoda
