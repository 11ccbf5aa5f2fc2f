#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ops/attention/attention_cases.h"
#include "ops/op_cases.h"
#include "tests/metal/cuda/modes.h"

namespace pagoda::metal_on_cuda {
namespace {

using Outputs = std::vector<std::vector<float>>;

constexpr int kMaxFailuresSaid = 4;  // per op

// The numbers in the line that is printed per op.
struct Totals {
  int num_cases = 0;
  int num_failures = 0;
  std::set<std::string> kernels;
  float largest_error = 0;  // as a share of the allowed error
};

// Returns lists of tokens, each to be computed together. A token's output must have the same bits
// in every list.
std::vector<std::vector<int>> token_lists(const OpCase& op_case) {
  std::vector<int> shuffled = all_tokens(op_case);
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(11));
  std::vector<std::vector<int>> lists = {shuffled};
  if (!op_case.rows_are_tokens) return lists;
  for (int t = 0; t < op_case.num_tokens; t += 1 + op_case.num_tokens / 4) lists.push_back({t});
  const std::vector<int> all = all_tokens(op_case);
  for (const int count : {2, 7, 12, 16}) {
    if (count < op_case.num_tokens) lists.emplace_back(all.end() - count, all.end());
  }
  return lists;
}

class Checker {
 public:
  Checker(CudaExec& exec, Exec& reference, Thoroughness thoroughness)
      : exec_(exec), reference_(reference), thoroughness_(thoroughness) {}

  void check(const OpCase& op_case) {
    if (thoroughness_ == Thoroughness::kEachKernel && !has_new_kernel(op_case)) return;
    Totals& totals = totals_[op_case.op];
    ++totals.num_cases;
    std::vector<KernelLaunch> launches;
    exec_.set_record(&launches);
    const Outputs actual = run_case(exec_, op_case, all_tokens(op_case)).value();
    exec_.set_record(nullptr);
    for (const KernelLaunch& launch : launches)
      totals.kernels.insert(launch.function.binary_name());
    const Outputs expected = run_case(reference_, op_case, all_tokens(op_case)).value();
    compare(op_case, actual, expected, totals);
    if (thoroughness_ == Thoroughness::kAll) check_company(op_case, actual, totals);
  }

  bool print() const {
    bool all_right = true;
    for (const auto& [op, totals] : totals_) {
      fmt::print("{:<20} {:>4} cases {:>4} kernels   largest error {:5.3f} of what is allowed{}\n",
                 op, totals.num_cases, totals.kernels.size(), totals.largest_error,
                 totals.num_failures == 0 ? "" : fmt::format("   {} FAILED", totals.num_failures));
      all_right = all_right && totals.num_failures == 0;
    }
    return all_right;
  }

 private:
  // Returns whether the case launches a kernel that no earlier case does. A listing device tells.
  bool has_new_kernel(const OpCase& op_case) {
    CudaExec listing(make_listing_device(), /*poisons=*/false);
    listing.set_matrix_units(exec_.matrix_units());
    std::vector<KernelLaunch> launches;
    listing.set_record(&launches);
    (void)run_case(listing, op_case, all_tokens(op_case)).value();
    bool is_new = false;
    for (const KernelLaunch& launch : launches)
      is_new |= seen_.insert(launch.function.binary_name()).second;
    return is_new;
  }

  void fail(const OpCase& op_case, const std::string& why, Totals& totals) {
    if (++totals.num_failures > kMaxFailuresSaid) return;
    fmt::print("FAILED {} {}: {}\n", op_case.op, op_case.description, why);
  }

  void compare(const OpCase& op_case, const Outputs& actual, const Outputs& expected,
               Totals& totals) {
    if (actual.size() != expected.size()) return fail(op_case, "other outputs", totals);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (actual[i].size() != expected[i].size()) return fail(op_case, "another size", totals);
      const float error = relative_error(actual[i], expected[i]);
      const float allowed = op_case.tolerance.of(Backend::kMlx);
      if (error > 0) totals.largest_error = std::max(totals.largest_error, error / allowed);
      if (!(error <= allowed)) {
        fail(op_case, fmt::format("output {}: expected an error of {}, got {}", i, allowed, error),
             totals);
      }
    }
  }

  void check_company(const OpCase& op_case, const Outputs& all, Totals& totals) {
    for (const std::vector<int>& tokens : token_lists(op_case)) {
      const Outputs actual = run_case(exec_, op_case, tokens).value();
      const Outputs expected = select_outputs(op_case, all, tokens);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (same_bits(actual[i], expected[i])) continue;
        fail(op_case, fmt::format("output {}: other bits for {} tokens", i, tokens.size()), totals);
        break;
      }
    }
  }

  CudaExec& exec_;
  Exec& reference_;
  Thoroughness thoroughness_;
  std::map<std::string, Totals> totals_;
  std::set<std::string> seen_;
};

bool is_a_product(const OpCase& op_case) {
  return op_case.op.ends_with("linear");
}

// Calls `visit` for each small case, and for all of attention's grid. Cases of products are visited
// once for each kind of matrix units.
template <typename Visit>
void for_each_case(CudaExec& exec, const std::string& filter, const Visit& visit) {
  for (const gpu::MatrixUnits units : {gpu::MatrixUnits::kOtherOrder, gpu::MatrixUnits::kUnusable,
                                       gpu::MatrixUnits::kAscendingChain}) {
    exec.set_matrix_units(units);
    for (const OpCase& op_case : all_op_cases()) {
      if (op_case.is_large || op_case.op.find(filter) == std::string::npos) continue;
      if (units == gpu::MatrixUnits::kAscendingChain || is_a_product(op_case)) visit(op_case);
    }
  }
  if (std::string_view("attention").find(filter) == std::string_view::npos) return;
  for (const AttentionShape& shape : attention_grid()) visit(make_attention_case(shape));
}

}  // namespace

bool check_ops(CudaExec& exec, Exec& reference, Thoroughness thoroughness,
               const std::string& filter) {
  Checker checker(exec, reference, thoroughness);
  for_each_case(exec, filter, [&](const OpCase& op_case) { checker.check(op_case); });
  return checker.print();
}

void list_ops(CudaExec& exec) {
  for_each_case(exec, "", [&](const OpCase& op_case) {
    (void)run_case(exec, op_case, all_tokens(op_case)).value();
    for (const std::vector<int>& tokens : token_lists(op_case))
      (void)run_case(exec, op_case, tokens).value();
  });
}

}  // namespace pagoda::metal_on_cuda
