// The main() of all tests: runs GoogleTest and, after failures, prints the commands that run the
// failed tests again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// Returns this run's settings that a test may read, such as "PAGODA_CPU_ISA='avx2' ".
std::string settings() {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view pair = *variable;
    const std::size_t equals = pair.find('=');
    if (!pair.starts_with("PAGODA_") || equals == pair.npos) continue;
    text +=
        std::string(pair.substr(0, equals)) + "='" + std::string(pair.substr(equals + 1)) + "' ";
  }
  return text;
}

class CommandsThatRepeat : public testing::EmptyTestEventListener {
 public:
  explicit CommandsThatRepeat(std::string program) : program_(std::move(program)) {}

 private:
  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Failed()) return;
    commands_ += "again: " + settings() + program_ + " --gtest_filter='" + info.test_suite_name() +
                 "." + info.name() + "'\n";
  }
  void OnTestProgramEnd(const testing::UnitTest&) override {
    std::fputs(commands_.c_str(), stdout);
  }

  std::string program_;
  std::string commands_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new CommandsThatRepeat(argv[0]));
  return RUN_ALL_TESTS();
}
