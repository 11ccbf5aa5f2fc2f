// Runs every op case on every backend of this binary. Results must be near the reference's. Their
// bits must depend neither on a token's batch and place in it, nor on the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "backend/backend.h"
#include "backend/cpu/vector_targets.h"
#include "ops/op_cases.h"
#include "ops/reference_outputs.h"

namespace pagoda {
namespace {

using Outputs = std::vector<std::vector<float>>;

// Returns null where the machine lacks the backend's device.
std::unique_ptr<Exec> make_test_exec(Backend backend, int num_threads = 2) {
  Result<std::unique_ptr<Exec>> exec = make_exec({.backend = backend, .num_threads = num_threads});
  if (!exec.ok()) {
    EXPECT_TRUE(exec.status().code() == StatusCode::kUnsupported ||
                exec.status().code() == StatusCode::kUnavailable)
        << exec.status().message();
    return nullptr;
  }
  return *std::move(exec);
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const ListedOp& support : listed_ops()) names.push_back(support.op);
  return names;
}

std::vector<OpCase> small_cases(const std::string& op) {
  std::vector<OpCase> cases = all_op_cases();
  std::erase_if(cases, [&](const OpCase& op_case) { return op_case.is_large || op_case.op != op; });
  EXPECT_FALSE(cases.empty());
  return cases;
}

// A test case for each op, so that one op can be tested alone: --gtest_filter='*attention'.
class EveryOp : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<OpCase> small_cases() { return pagoda::small_cases(GetParam()); }
};

// A test case for each op and backend: --gtest_filter='*EveryOpOnABackend*/mlx_*'.
class EveryOpOnABackend : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {
 protected:
  static Backend backend() { return std::get<0>(GetParam()); }
  static std::vector<OpCase> small_cases() { return pagoda::small_cases(std::get<1>(GetParam())); }
};

std::string name_of(const OpCase& op_case) {
  return op_case.op + " " + op_case.description;
}

// Returns lists of tokens. A token's output must have the same bits in each list that has it.
std::vector<std::vector<int>> token_lists(const OpCase& op_case) {
  std::vector<int> shuffled = all_tokens(op_case);
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(11));
  std::vector<std::vector<int>> lists = {shuffled};
  if (!op_case.rows_are_tokens) return lists;
  for (int t = 0; t < op_case.num_tokens; t += 1 + op_case.num_tokens / 8) lists.push_back({t});
  const std::vector<int> all = all_tokens(op_case);
  for (const int count : {2, 7, 12, 16}) {
    if (count >= op_case.num_tokens) continue;
    lists.emplace_back(all.begin(), all.begin() + count);
    lists.emplace_back(all.end() - count, all.end());
  }
  return lists;
}

TEST_P(EveryOpOnABackend, IsNearTheReference) {
  const auto exec = make_test_exec(backend());
  if (!exec) return;
  for (const OpCase& op_case : small_cases()) {
    SCOPED_TRACE(name_of(op_case));
    const std::vector<int> tokens = all_tokens(op_case);
    const Outputs& expected = reference_outputs(op_case);
    const Outputs actual = run_case(*exec, op_case, tokens).value();
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].size(), expected[i].size());
      EXPECT_LE(relative_error(actual[i], expected[i]), op_case.tolerance.of(backend()));
    }
  }
}

// Tests the bodies for older instruction sets, which would otherwise run only on older machines.
TEST_P(EveryOp, EveryVectorTargetIsNearTheReferenceAndBatchInvariant) {
  for (const cpu::VectorTarget& target : cpu::vector_targets()) {
    const cpu::OnlyVectorTarget only(target);
    const auto exec = make_test_exec(Backend::kCpu);
    for (const OpCase& op_case : small_cases()) {
      SCOPED_TRACE(fmt::format("{} on {}", name_of(op_case), target.name));
      const std::vector<int> tokens = all_tokens(op_case);
      const Outputs& expected = reference_outputs(op_case);
      const Outputs actual = run_case(*exec, op_case, tokens).value();
      const std::vector<int> last = {tokens.back()};
      const Outputs alone = run_case(*exec, op_case, last).value();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        EXPECT_LE(relative_error(actual[i], expected[i]), op_case.tolerance.cpu);
        if (!op_case.rows_are_tokens) continue;
        EXPECT_TRUE(same_bits(alone[i], select_outputs(op_case, actual, last)[i]));
      }
    }
  }
}

TEST_P(EveryOp, OutputsAreFinite) {
  for (const OpCase& op_case : small_cases()) {
    SCOPED_TRACE(name_of(op_case));
    for (const std::vector<float>& output : reference_outputs(op_case)) {
      for (const float value : output) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST_P(EveryOpOnABackend, NoTokenDependsOnItsBatchOrPlace) {
  const auto exec = make_test_exec(backend());
  if (!exec) return;
  for (const OpCase& op_case : small_cases()) {
    SCOPED_TRACE(name_of(op_case));
    const Outputs all = run_case(*exec, op_case, all_tokens(op_case)).value();
    for (const std::vector<int>& tokens : token_lists(op_case)) {
      const Outputs actual = run_case(*exec, op_case, tokens).value();
      const Outputs expected = select_outputs(op_case, all, tokens);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_TRUE(same_bits(actual[i], expected[i])) << tokens.size() << " tokens";
      }
    }
  }
}

TEST_P(EveryOp, NoBitDependsOnTheThreadCount) {
  const auto one = make_test_exec(Backend::kCpu, 1);
  const int all_threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  for (const int num_threads : std::set<int>{2, 3, all_threads}) {
    const auto more = make_test_exec(Backend::kCpu, num_threads);
    for (const OpCase& op_case : small_cases()) {
      SCOPED_TRACE(fmt::format("{} on {} threads", name_of(op_case), num_threads));
      const std::vector<int> tokens = all_tokens(op_case);
      const Outputs expected = run_case(*one, op_case, tokens).value();
      const Outputs actual = run_case(*more, op_case, tokens).value();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_TRUE(same_bits(actual[i], expected[i]));
      }
    }
  }
}

TEST_P(EveryOp, NativeResultsReturnTheirMemory) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = make_test_exec(backend);
    for (const OpCase& op_case : small_cases()) {
      SCOPED_TRACE(name_of(op_case));
      const CaseRun run = op_case.prepare(*exec, all_tokens(op_case)).value();
      const auto addresses = [&] {
        std::vector<const std::byte*> result;
        for (const Tensor& output : run()) result.push_back(output.buffer()->host());
        return result;
      };
      EXPECT_EQ(addresses(), addresses());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOp, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, EveryOpOnABackend,
                         ::testing::Combine(::testing::Values(Backend::kReference, Backend::kCpu,
                                                              Backend::kMlx, Backend::kCuda),
                                            ::testing::ValuesIn(op_names())),
                         [](const auto& info) {
                           return std::string(backend_name(std::get<0>(info.param))) + "_" +
                                  std::get<1>(info.param);
                         });

// reference_outputs() finds a case by its name.
TEST(OpCases, HaveDifferentNames) {
  std::set<std::string> names;
  for (const OpCase& op_case : all_op_cases()) {
    EXPECT_TRUE(names.insert(name_of(op_case)).second) << name_of(op_case) << " is there twice";
  }
}

TEST(ListedOp, ListsEveryOpOnceWithItsCases) {
  std::set<std::string> names;
  for (const ListedOp& support : listed_ops()) {
    EXPECT_TRUE(names.insert(support.op).second) << support.op << " is listed twice";
    EXPECT_GT(support.num_cases, 0);
  }
  EXPECT_EQ(names, (std::set<std::string>{"add_rms_norm",
                                          "apply_logit_bias",
                                          "apply_penalties",
                                          "apply_token_mask",
                                          "argmax",
                                          "attention",
                                          "clamp",
                                          "count_tokens",
                                          "expert_gated_linear",
                                          "expert_linear",
                                          "gate_heads",
                                          "gated_linear",
                                          "gather_rows",
                                          "glu",
                                          "group_by_expert",
                                          "kv_copy_blocks",
                                          "kv_write",
                                          "linear",
                                          "log_probs",
                                          "resolve_tokens",
                                          "rms_norm",
                                          "rms_norm_rope",
                                          "rope",
                                          "rope_angles",
                                          "rope_kv_write",
                                          "route",
                                          "sample",
                                          "select_rows",
                                          "soft_cap",
                                          "top_k_top_p_min_p"}));
}

}  // namespace
}  // namespace pagoda
