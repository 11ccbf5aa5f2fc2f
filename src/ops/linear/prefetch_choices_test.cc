#include "ops/linear/prefetch_choices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "backend/backend.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_cases.h"
#include "ops/op_case.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRows = 64, kCols = 512;
constexpr WeightPrefetch kWays[] = {WeightPrefetch::kPastCaches, WeightPrefetch::kSecondLevel,
                                    WeightPrefetch::kSecondLevelHalf};

class PrefetchChoices : public ::testing::Test {
 protected:
  void SetUp() override {
    exec_ = make_exec({.backend = Backend::kCpu, .num_threads = 2}).value();
    const std::vector<HostTensor> parts = {random_matrix(7, WeightFormat::kQ4_0, kRows, kCols)};
    weight_ = prepare_weight(*exec_, parts).value();
  }

  cpu::CpuExec& cpu_exec() { return static_cast<cpu::CpuExec&>(*exec_); }
  WeightPrefetch way() { return cpu_exec().prefetch_of(cpu::PanelKind::kQ4_0); }

  // Returns whether this machine's kernels can prefetch in several ways. If not, nothing is
  // measured or noted.
  bool has_ways() {
    const CpuIsa isa = cpu_exec().isa();
    return isa == CpuIsa::kAvx2 || includes_avx512(isa);
  }

  std::string text() const {
    std::ifstream stream(file_);
    return (std::ostringstream() << stream.rdbuf()).str();
  }
  void write(const std::string& text) const {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }

  testing::TemporaryFolder folder_;
  const fs::path file_ = fs::path(folder_.path()) / "made" / "prefetch";
  std::unique_ptr<Exec> exec_;
  Weight weight_;
};

TEST_F(PrefetchChoices, AMeasuredWayIsNotedAndTakenAgain) {
  cpu::choose_prefetch(cpu_exec(), file_);
  ASSERT_EQ(fs::exists(file_), has_ways());
  if (!has_ways()) return;
  const WeightPrefetch measured = way();
  const std::string noted = text();
  ASSERT_NE(noted.find(", 2 threads, Q4_0: "), std::string::npos) << noted;
  EXPECT_EQ(noted.find("Q8_0"), std::string::npos) << "no weight has such panels";
  for (const WeightPrefetch other : kWays) {
    cpu_exec().set_prefetch(cpu::PanelKind::kQ4_0, other);
    cpu::choose_prefetch(cpu_exec(), file_);
    EXPECT_EQ(way(), measured);
    EXPECT_EQ(text(), noted);
  }
  for (const auto& [name, noted_way] :
       {std::pair("past-caches", WeightPrefetch::kPastCaches),
        std::pair("second-level-half", WeightPrefetch::kSecondLevelHalf)}) {
    write(noted.substr(0, noted.rfind(": ") + 2) + name + "\n");
    cpu::choose_prefetch(cpu_exec(), file_);
    EXPECT_EQ(way(), noted_way);
  }
}

TEST_F(PrefetchChoices, AFileThatIsNotUnderstoodIsMadeAgain) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("pagoda prefetch 0\nx: y\n"),
        std::string("pagoda prefetch 1\nhalf a li"), std::string(200, '\0'),
        std::string(std::size_t{1} << 20, 'x')}) {
    write(text);
    cpu::choose_prefetch(cpu_exec(), file_);
    if (!has_ways()) {
      EXPECT_EQ(this->text(), text);
      continue;
    }
    EXPECT_TRUE(this->text().starts_with("pagoda prefetch 1\n"));
    EXPECT_NE(this->text().find("Q4_0: "), std::string::npos);
  }
}

TEST_F(PrefetchChoices, AFolderThatTakesNoFileLosesTheNoteAlone) {
  fs::create_directories(file_ / "in the file's place");
  cpu::choose_prefetch(cpu_exec(), file_);
  EXPECT_TRUE(fs::is_directory(file_));
  cpu::choose_prefetch(cpu_exec(), "");
  std::size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(file_.parent_path())) num_files += entry.exists();
  EXPECT_EQ(num_files, 1u) << "an unfinished file is left";
}

TEST_F(PrefetchChoices, NoBitDependsOnTheWay) {
  const Tensor x = exec_->upload<float>(random_values(8, kCols), {1, kCols});
  const Tensor expected = linear(*exec_, x, weight_, {});
  for (const WeightPrefetch way : kWays) {
    cpu_exec().set_prefetch(cpu::PanelKind::kQ4_0, way);
    const Tensor out = linear(*exec_, x, weight_, {});
    EXPECT_TRUE(same_bits({out.data<float>(), std::size_t{kRows}},
                          {expected.data<float>(), std::size_t{kRows}}));
  }
}

}  // namespace
}  // namespace pagoda
