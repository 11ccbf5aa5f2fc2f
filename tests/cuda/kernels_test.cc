// NVIDIA's compiler takes the kernels of all op cases, for Ampere, Hopper and Blackwell. No GPU is
// needed. A run compiles a few, other ones each day; PAGODA_CUDA_KERNELS=all compiles every one.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_exec.h"
#include "ops/op_cases.h"
#include "tests/cuda/fake_driver.h"

namespace pagoda::cuda {
namespace {

constexpr std::size_t kKernelsOfARun = 8;

// Keeps each kernel's text by its name.
class ListingCompiler final : public Compiler {
 public:
  Result<std::string> compile(const std::string& text, const std::string& name,
                              const std::string& /*architecture*/) override {
    texts[name] = text;
    return text;
  }
  std::string identity() const override { return "list"; }
  int major_version() const override { return 12; }

  std::map<std::string, std::string> texts;
};

// Returns the kernels that the small cases of all ops launch.
std::map<std::string, std::string> listed_kernels() {
  FakeDriver driver;
  const auto compiler = std::make_shared<ListingCompiler>();
  {
    const auto exec = CudaExec::create(Device::open(driver.table()).value(), compiler, {}).value();
    for (const OpCase& op_case : all_op_cases()) {
      if (op_case.is_large) continue;
      const Result<CaseRun> run = op_case.prepare(*exec, all_tokens(op_case));
      EXPECT_TRUE(run.ok()) << op_case.op << " " << op_case.description;
      if (!run.ok()) continue;
      const std::vector<Tensor> outputs = (*run)();
      EXPECT_TRUE(exec->evaluate(outputs).ok());
    }
  }
  return compiler->texts;
}

TEST(CudaKernels, AreTakenByNvidiasCompiler) {
  const Result<std::shared_ptr<Compiler>> compiler = load_compiler();
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  const std::map<std::string, std::string> listed = listed_kernels();
  std::vector<std::pair<std::string, std::string>> kernels(listed.begin(), listed.end());
  EXPECT_GT(kernels.size(), 100u);
  const char* const wish = std::getenv("PAGODA_CUDA_KERNELS");
  if (wish == nullptr || std::string_view(wish) != "all") {
    const auto day = std::chrono::duration_cast<std::chrono::days>(
        std::chrono::system_clock::now().time_since_epoch());
    std::printf("seed %lld\n", static_cast<long long>(day.count()));
    std::shuffle(kernels.begin(), kernels.end(), std::mt19937(static_cast<unsigned>(day.count())));
    kernels.resize(kKernelsOfARun);
  }
  for (const auto& [name, text] : kernels) {
    for (const char* const architecture : {"sm_80", "sm_90a", "sm_120a"}) {
      const Result<std::string> image = (*compiler)->compile(text, name, architecture);
      EXPECT_TRUE(image.ok()) << architecture << ": " << image.status().message();
    }
  }
}

}  // namespace
}  // namespace pagoda::cuda
