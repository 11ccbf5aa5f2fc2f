#include "backend/cpu/cpu_isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/vector_targets.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

// Sets PAGODA_CPU_ISA, and restores its former value at the end.
class ScopedIsaVariable {
 public:
  explicit ScopedIsaVariable(const std::string& value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    setenv(kName, value.c_str(), 1);
  }
  ScopedIsaVariable(const ScopedIsaVariable&) = delete;
  ScopedIsaVariable& operator=(const ScopedIsaVariable&) = delete;
  ~ScopedIsaVariable() { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }

 private:
  static constexpr const char* kName = "PAGODA_CPU_ISA";
  std::optional<std::string> before_;
};

// Names an ISA that this architecture does not have.
std::string foreign_isa() {
#if defined(__x86_64__)
  return "neon";
#else
  return "avx512";
#endif
}

// Returns Highway's targets for an ISA. Which of them exist depends on Highway's version.
std::vector<std::string_view> targets_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
#if defined(__x86_64__)
      return {"SSE4"};
#endif
    case CpuIsa::kNeon:
      return {"NEON"};
    case CpuIsa::kAvx2:
      return {"AVX2"};
    case CpuIsa::kAvx512:
    case CpuIsa::kAmx:
      return {"AVX3", "AVX3_DL"};  // only the second from Highway 1.3 on
  }
  return {};
}

// Returns the targets for an ISA in this build. The edit preset compiles only this machine's best
// target, which then serves every ISA.
std::vector<std::string_view> built_targets_of(CpuIsa isa) {
  const std::vector<cpu::VectorTarget> built = cpu::vector_targets();
  if (built.size() == 1) return {built.front().name};
  return targets_of(isa);
}

TEST(CpuIsa, TheBestIsChosenWhereNobodyAsks) {
  const ScopedIsaVariable variable("");
  EXPECT_EQ(choose_cpu_isa().value(), supported_cpu_isas().front());
  EXPECT_EQ(supported_cpu_isas().back(), CpuIsa::kPortable);
}

TEST(CpuIsa, TheVariableForcesTheIsaOfExecsAndOfHighway) {
  for (const CpuIsa isa : supported_cpu_isas()) {
    const ScopedIsaVariable variable{std::string(cpu_isa_name(isa))};
    const auto exec = make_exec({.backend = Backend::kCpu, .num_threads = 1}).value();
    EXPECT_EQ(cpu::isa_of(*exec), isa);
    EXPECT_THAT(built_targets_of(isa), ::testing::Contains(cpu::running_vector_target()));
  }
}

TEST(CpuIsa, OptionsForceTheIsaWhateverTheVariableSays) {
  const ScopedIsaVariable variable("portable");
  for (const CpuIsa isa : supported_cpu_isas()) {
    const auto exec =
        make_exec({.backend = Backend::kCpu, .num_threads = 1, .cpu_isa = isa}).value();
    EXPECT_EQ(cpu::isa_of(*exec), isa);
    EXPECT_THAT(built_targets_of(isa), ::testing::Contains(cpu::running_vector_target()));
  }
}

TEST(CpuIsa, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const char* name : {"sse9", "AVX2", "avx", "avx512 "}) {
    const ScopedIsaVariable variable(name);
    const Status status = make_exec({.backend = Backend::kCpu}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("PAGODA_CPU_ISA"));
    EXPECT_THAT(status.message(), HasSubstr("portable"));
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
}

TEST(CpuIsa, OneThatTheMachineLacksIsRefused) {
  const ScopedIsaVariable variable(foreign_isa());
  const Status status = make_exec({.backend = Backend::kCpu}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("this machine has"));
  EXPECT_THAT(status.message(), HasSubstr("not " + foreign_isa()));
}

TEST(VectorTargets, EachOfThemRuns) {
  for (const cpu::VectorTarget& target : cpu::vector_targets()) {
    const cpu::OnlyVectorTarget only(target);
    const auto exec =
        make_exec(
            {.backend = Backend::kCpu, .num_threads = 1, .cpu_isa = supported_cpu_isas().front()})
            .value();
    EXPECT_EQ(cpu::running_vector_target(), target.name);
  }
}

}  // namespace
}  // namespace pagoda
