// Pulls from a stand-in of the hub (tests/support/hub_stand_in.py). A repository's name says what
// goes wrong with it.
#include "hub/pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/json.h"
#include "hub/model_store.h"
#include "hub/pull_file.h"
#include "hub/pull_hub.h"
#include "tests/support/source_path.h"

extern char** environ;

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// The stand-in as a child process, which ends when its standard input is closed.
class HubStandIn {
 public:
  HubStandIn() {
    int input[2];
    int output[2];
    if (pipe(input) != 0 || pipe(output) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, input[1]);
    std::string script = testing::source_path("tests/support/hub_stand_in.py");
    std::string python = "python3";
    char* arguments[] = {python.data(), script.data(), nullptr};
    if (posix_spawnp(&child_, "python3", &actions, nullptr, arguments, environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    keep_alive_ = input[1];
    std::FILE* ports = fdopen(output[0], "r");
    if (std::fscanf(ports, "%d %d", &port_, &other_port_) != 2) std::abort();
    std::fclose(ports);
  }
  ~HubStandIn() {
    close(keep_alive_);
    waitpid(child_, nullptr, 0);
  }

  std::string endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int other_port() const { return other_port_; }

  // Returns the requests about this repository so far.
  std::vector<json> requests(const std::string& repo) const {
    HttpClient client("");
    std::vector<json> of_repo;
    for (const json& request : parse_json(client.get(endpoint() + "/requests", 1 << 20).value())) {
      if (request["path"].get<std::string>().find("/" + repo + "/") != std::string::npos) {
        of_repo.push_back(request);
      }
    }
    return of_repo;
  }

 private:
  pid_t child_ = 0;
  int keep_alive_ = -1;
  int port_ = 0;
  int other_port_ = 0;
};

class PullTest : public ::testing::Test {
 protected:
  // All tests share one stand-in. Each test uses repositories of its own organisation, so it sees
  // no other test's requests.
  static void SetUpTestSuite() { hub_ = std::make_unique<HubStandIn>(); }
  static void TearDownTestSuite() { hub_.reset(); }

  PullTest() { fs::remove_all(dir_); }
  ~PullTest() override { fs::remove_all(dir_); }

  std::string repo(const std::string& name) const { return org_ + "/" + name; }
  Result<fs::path> pull(const std::string& name, const std::string& token = "") {
    return pull_from_hub({.org = org_, .name = name}, {.endpoint = hub_->endpoint(),
                                                       .token = token,
                                                       .model_dir = dir_,
                                                       .seconds_between_attempts = 0.01});
  }
  std::vector<std::string> ranges_of(const std::string& name, const std::string& file) const {
    std::vector<std::string> ranges;
    for (const json& request : hub_->requests(repo(name))) {
      if (request["path"].get<std::string>().ends_with(file)) {
        ranges.push_back(request["range"].is_null() ? "all" : request["range"].get<std::string>());
      }
    }
    return ranges;
  }
  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }
  static std::string text_of(const fs::path& file) {
    std::ifstream input(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(input), {}};
  }
  fs::path partial_folder(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(dir_ / "hf" / org_ / name)) {
      if (entry.path().extension() == ".partial") return entry.path();
    }
    return {};
  }
  // Returns whether there is no folder that a later command would use as the model.
  bool nothing_is_complete(const std::string& name) const {
    return !resolve_model("hf:" + repo(name), dir_).ok();
  }

  static std::unique_ptr<HubStandIn> hub_;
  const std::string org_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path dir_ = fs::path(::testing::TempDir()) / "pagoda_pull_test" / org_;
};

std::unique_ptr<HubStandIn> PullTest::hub_;

constexpr const char* kWeights = "model-00001-of-00002.safetensors";
constexpr std::uintmax_t kWeightsSize = 350'000;

TEST_F(PullTest, FetchesWhatAnEngineReadsAndNothingElse) {
  const auto folder = pull("whole");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_THAT(
      names_in(*folder),
      UnorderedElementsAre("config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "chat_template.jinja", kWeights,
                           "model-00002-of-00002.safetensors", "model.safetensors.index.json"));
  EXPECT_EQ(text_of(*folder / "chat_template.jinja"), "{{ messages }}");
  EXPECT_EQ(fs::file_size(*folder / kWeights), kWeightsSize);
  EXPECT_EQ(resolve_model("hf:" + repo("whole"), dir_).value(), *folder);
}

TEST_F(PullTest, ASecondPullAsksOnlyForTheRevision) {
  ASSERT_TRUE(pull("whole").ok());
  const std::size_t before = hub_->requests(repo("whole")).size();
  ASSERT_TRUE(pull("whole").ok());
  EXPECT_EQ(hub_->requests(repo("whole")).size(), before + 1);
}

TEST_F(PullTest, ABranchAndItsCommitAreOneFolder) {
  const auto main = pull("whole");
  const auto commit =
      pull_from_hub({.org = org_, .name = "whole", .revision = main.value().filename().string()},
                    {.endpoint = hub_->endpoint(), .token = "", .model_dir = dir_});
  EXPECT_EQ(commit.value(), *main);
}

TEST_F(PullTest, GoesOnWhereATransferBroke) {
  const auto folder = pull("cut");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(ranges_of("cut", kWeights),
            (std::vector<std::string>{"all", "bytes=100000-", "bytes=200000-", "bytes=300000-"}));
}

TEST_F(PullTest, ALaterPullGoesOnWhereAnEarlierOneGaveUp) {
  const auto failed = pull("cut-for-good");
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(nothing_is_complete("cut-for-good"));
  const fs::path partial = partial_folder("cut-for-good");
  EXPECT_EQ(fs::file_size(partial / (std::string(kWeights) + ".partial")), 100'000u);
  // The hub recovers: the repository `whole` has the same commit.
  fs::create_directories(dir_ / "hf" / org_ / "whole");
  fs::rename(partial, dir_ / "hf" / org_ / "whole" / partial.filename());
  ASSERT_TRUE(pull("whole").ok());
  EXPECT_EQ(ranges_of("whole", kWeights), std::vector<std::string>{"bytes=100000-"});
  EXPECT_TRUE(ranges_of("whole", "/config.json").empty()) << "complete files are not fetched again";
}

TEST_F(PullTest, StartsAnewWhereTheServerHasNoRanges) {
  const auto folder = pull("no-ranges");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(fs::file_size(*folder / kWeights), kWeightsSize);
}

TEST_F(PullTest, ARangeThatWasNotAskedForIsRefused) {
  EXPECT_THAT(pull("lying-range").status().message(),
              HasSubstr("expected the bytes from 100000 on, got bytes 100001-"));
}

TEST_F(PullTest, BytesThatAreNotTheirDigestsAreThrownAway) {
  const auto failed = pull("wrong-bytes");
  EXPECT_EQ(failed.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(failed.status().message(), AllOf(HasSubstr(kWeights), HasSubstr("expected SHA-256")));
  EXPECT_TRUE(nothing_is_complete("wrong-bytes"));
  EXPECT_THAT(names_in(partial_folder("wrong-bytes")),
              Not(Contains(::testing::StartsWith("model-00001"))));
}

TEST_F(PullTest, MoreBytesThanAnnouncedAreNotWritten) {
  const auto failed = pull("longer");
  EXPECT_THAT(failed.status().message(), HasSubstr("expected 350000 bytes, got more"));
  EXPECT_LE(fs::file_size(partial_folder("longer") / (std::string(kWeights) + ".partial")),
            kWeightsSize);
}

TEST_F(PullTest, TheTokenOpensAPrivateModel) {
  const auto refused = pull("private");
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("HTTP 401"), HasSubstr("HF_TOKEN")));
  EXPECT_TRUE(pull("private", "secret").ok());
}

TEST_F(PullTest, ARedirectIsFollowedWithoutTheToken) {
  ASSERT_TRUE(pull("moved", "secret").ok());
  int at_home = 0;
  int elsewhere = 0;
  for (const json& request : hub_->requests(repo("moved"))) {
    if (request["port"] == hub_->other_port()) {
      ++elsewhere;
      EXPECT_TRUE(request["authorization"].is_null()) << request;
    } else {
      ++at_home;
      EXPECT_EQ(request["authorization"], "Bearer secret");
    }
  }
  EXPECT_EQ(elsewhere, 8);
  EXPECT_EQ(at_home, 9);
}

TEST_F(PullTest, AFileThatWouldLeaveItsFolderFailsThePull) {
  const auto failed = pull("traversal");
  EXPECT_THAT(failed.status().message(),
              HasSubstr(R"(file "../escaped.json": expected a path inside the model's folder)"));
  EXPECT_EQ(hub_->requests(repo("traversal")).size(), 1u) << "no file was asked for";
}

TEST_F(PullTest, AHeaderWithoutEndIsToldAsThat) {
  for (const std::string name : {"long-header", "many-headers"}) {
    const auto failed = pull(name);
    EXPECT_EQ(failed.status().code(), StatusCode::kDataLoss) << name;
    EXPECT_THAT(failed.status().message(),
                HasSubstr("expected a header of at most 65536 bytes, got more"));
    EXPECT_EQ(hub_->requests(repo(name)).size(), 1u) << "it is not asked again";
  }
}

TEST_F(PullTest, AModelThatDoesNotFitIsRefusedBeforeItsFirstByte) {
  const auto failed = pull("huge");
  EXPECT_EQ(failed.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(failed.status().message(), HasSubstr("expected room for"));
  EXPECT_EQ(hub_->requests(repo("huge")).size(), 1u);
}

TEST_F(PullTest, SizesThatAddUpBeyond63BitsDoNotFitEither) {
  const auto failed = pull("beyond");
  EXPECT_EQ(failed.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(failed.status().message(), HasSubstr("expected room for 9223372036854775807 bytes"));
}

TEST_F(PullTest, SaysWhatIsNotThere) {
  EXPECT_EQ(pull("gone").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(pull("gone").status().message(), HasSubstr("HTTP 404"));
  EXPECT_THAT(pull("no-weights").status().message(), HasSubstr("expected safetensors, or GGUF"));
  EXPECT_THAT(pull("not-json").status().message(), HasSubstr("expected a JSON object"));
  EXPECT_THAT(pull("no-digest").status().message(),
              HasSubstr("expected a digest of 40 hex digits"));
}

TEST_F(PullTest, ABusyHubIsUnavailable) {
  const Status status = pull("busy").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("HTTP 503"));
}

TEST_F(PullTest, NobodyListeningIsUnavailable) {
  const auto failed =
      pull_from_hub({.org = "a", .name = "b"},
                    {.endpoint = "http://127.0.0.1:1", .token = "", .model_dir = dir_});
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(failed.status().message(), HasSubstr("127.0.0.1:1"));
}

TEST_F(PullTest, OfGgufFilesTheBestIsTaken) {
  const auto folder = pull("gguf");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_THAT(names_in(*folder), AllOf(Contains("m.q8_0.gguf"), Not(Contains("m.BF16.gguf")),
                                       Not(Contains("m.Q2_K.gguf"))));
  EXPECT_EQ(resolve_model("hf:" + repo("gguf"), dir_).value(), *folder / "m.q8_0.gguf");
}

TEST_F(PullTest, AQuantisationIsFetchedBesideTheOthers) {
  const auto best = pull("gguf");
  PullPlan plan;
  const HubOptions options{.endpoint = hub_->endpoint(),
                           .model_dir = dir_,
                           .on_plan = [&](const PullPlan& told) { plan = told; }};
  const HubName split{.org = org_, .name = "gguf", .quantization = "Q4_K_M"};
  const auto folder = pull_from_hub(split, options);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_THAT(names_in(*folder), AllOf(Contains("m-Q4_K_M-00001-of-00002.gguf"),
                                       Contains("m-Q4_K_M-00002-of-00002.gguf"),
                                       Contains("config.json"), Not(Contains("m.q8_0.gguf"))));
  EXPECT_EQ(plan.quantization, "Q4_K_M");
  EXPECT_EQ(plan.num_files, names_in(*folder).size());
  EXPECT_EQ(plan.missing_bytes, plan.num_bytes);
  EXPECT_EQ(resolve_model("hf:" + repo("gguf") + ":q4_k_m", dir_).value(),
            *folder / "m-Q4_K_M-00001-of-00002.gguf");
  EXPECT_EQ(resolve_model("hf:" + repo("gguf"), dir_).value(), *best / "m.q8_0.gguf");
  EXPECT_THAT(pull_from_hub({.org = org_, .name = "gguf", .quantization = "Q5_K_M"}, options)
                  .status()
                  .message(),
              HasSubstr("expected GGUF in Q5_K_M, got Q8_0"));
}

TEST_F(PullTest, AnUnknownNameIsRefused) {
  const auto failed = pull_model("gpt-17", {.model_dir = dir_, .pythons = {}});
  EXPECT_EQ(failed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(failed.status().message(), HasSubstr("expected smollm2 or hf:ORG/NAME"));
}

TEST_F(PullTest, WithoutAPythonTheDefaultModelSaysWhatItNeeds) {
  const auto failed = pull_model("smollm2", {.model_dir = dir_, .pythons = {"no-such-python"}});
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(failed.status().message(), HasSubstr("expected python3 with pip"));
}

TEST(PullFile, AFullDiskIsSaid) {
  HubStandIn hub;
  const fs::path dir = fs::path(::testing::TempDir()) / "pagoda_full_disk";
  fs::remove_all(dir);
  fs::create_directories(dir);
  fs::create_symlink("/dev/full", dir / "weights.partial");  // every write to it fails with ENOSPC
  HttpClient client("");
  const Status status = pull_file(client, {.url = hub.endpoint() + "/requests",
                                           .file = dir / "weights",
                                           .expected = {.hex = std::string(64, '0'), .size = 2}});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("weights.partial: No space left on device"));
  fs::remove_all(dir);
}

TEST(ContentHasher, NamesBytesAsGitDoes) {
  const std::string text = "hello\n";  // git hash-object gives this id
  ContentHasher hasher({.kind = ContentId::Kind::kGitBlob, .hex = "", .size = 6});
  hasher.update(std::as_bytes(std::span(text)));
  EXPECT_EQ(hasher.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(RedirectProtocols, NeverLeaveEncryption) {
  EXPECT_STREQ(redirect_protocols("https://a/b"), "https");
  EXPECT_STREQ(redirect_protocols("HTTP://a/b"), "https");
  EXPECT_STREQ(redirect_protocols("http://a/b"), "http,https");
}

TEST(EscapeUrlPath, KeepsSlashesAndEscapesTheRest) {
  EXPECT_EQ(escape_url_path("a/b-c_d.~e"), "a/b-c_d.~e");
  EXPECT_EQ(escape_url_path("a b?c#d%é"), "a%20b%3Fc%23d%25%C3%A9");
}

}  // namespace
}  // namespace pagoda
