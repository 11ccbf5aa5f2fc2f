// Runs an op's cases with kernels whose every access is checked. Results must be near the
// reference, and a token's bits must not depend on its batch and its place there. test_mutations.py
// gives it kernels with deliberate mistakes.
//
// Kernels are loaded from shared libraries, so that another kernel needs no new link of the
// program. Prints the first error in one line, and exits with 1.
#include <dlfcn.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ops/op_cases.h"
#include "tests/metal/stand_in.h"

namespace pagoda {
namespace {

using Outputs = std::vector<std::vector<float>>;

struct Arguments {
  std::string op;
  std::vector<std::string> kernels;  // paths of shared libraries
  std::vector<std::string> only;     // cases whose description contains one of these; empty: all
  std::string units = "chain";       // order in which matrix units add
  std::uint64_t seed = 1;
};

const std::map<std::string, emulator::MatrixOrder> kUnits = {
    {"chain", emulator::MatrixOrder::kAscending},
    {"tree", emulator::MatrixOrder::kPairs},
    {"by_place", emulator::MatrixOrder::kByPlace}};

bool is_wanted(const OpCase& op_case, const Arguments& arguments) {
  if (op_case.op != arguments.op || op_case.is_large) return false;
  return arguments.only.empty() ||
         std::ranges::any_of(arguments.only, [&](const std::string& text) {
           return op_case.description.find(text) != std::string::npos;
         });
}

// Returns lists of tokens, each to be computed together. A token's output must have the same bits
// in every list.
std::vector<std::vector<int>> token_lists(const OpCase& op_case) {
  const std::vector<int> all = all_tokens(op_case);
  std::vector<std::vector<int>> lists = {all};
  std::shuffle(lists[0].begin(), lists[0].end(), std::mt19937(11));
  if (!op_case.rows_are_tokens) return lists;
  for (const int token : {0, op_case.num_tokens / 2, op_case.num_tokens - 1})
    lists.push_back({token});
  for (const int count : {2, 7}) {
    if (count < op_case.num_tokens) lists.emplace_back(all.end() - count, all.end());
  }
  return lists;
}

// Returns the first error of a case, or an empty text.
std::string fault_of(const OpCase& op_case, Exec& exec, Exec& reference) {
  const std::vector<int> tokens = all_tokens(op_case);
  const Result<Outputs> expected = run_case(reference, op_case, tokens);
  if (!expected.ok()) return fmt::format("reference: {}", expected.status().message());
  const Result<Outputs> all = run_case(exec, op_case, tokens);
  if (!all.ok()) return all.status().message();
  for (std::size_t i = 0; i < all->size(); ++i) {
    const float error = relative_error((*all)[i], (*expected)[i]);
    if (!(error <= op_case.tolerance.of(Backend::kMlx)))
      return fmt::format("output {} is off by {:.1e} of the largest value", i, error);
  }
  for (const std::vector<int>& list : token_lists(op_case)) {
    const Result<Outputs> some = run_case(exec, op_case, list);
    if (!some.ok()) return some.status().message();
    const Outputs same = select_outputs(op_case, *all, list);
    for (std::size_t i = 0; i < some->size(); ++i) {
      if (!same_bits((*some)[i], same[i]))
        return fmt::format("output {} has other bits in a batch of {}", i, list.size());
    }
  }
  return {};
}

// Returns the process's exit status.
int run(const Arguments& arguments) {
  for (const std::string& library : arguments.kernels) {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      fmt::print("{}\n", dlerror());
      return 2;
    }
  }
  mlx::stand_in::Options options = mlx::stand_in::options_of_environment();
  options.is_traced = true;
  options.seed = arguments.seed;
  options.emulator.matrix_order = kUnits.at(arguments.units);
  mlx::stand_in::configure(options);
  const Result<std::unique_ptr<Exec>> exec = make_exec({.backend = Backend::kMlx});
  if (!exec.ok()) {
    fmt::print("{}\n", exec.status().message());
    return 1;
  }
  const auto reference = make_exec({.backend = Backend::kReference, .num_threads = 1}).value();
  int num_cases = 0;
  for (const OpCase& op_case : all_op_cases()) {
    if (!is_wanted(op_case, arguments)) continue;
    ++num_cases;
    const std::string fault = fault_of(op_case, **exec, *reference);
    if (fault.empty()) continue;
    fmt::print("{} {}: {}\n", op_case.op, op_case.description, fault);
    return 1;
  }
  fmt::print("{} cases of {}\n", num_cases, arguments.op);
  return num_cases > 0 ? 0 : 2;
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  pagoda::Arguments arguments;
  CLI::App app("Runs an op's cases by kernels that are checked at every access.");
  app.add_option("op", arguments.op)->required();
  app.add_option("--kernels", arguments.kernels, "Shared libraries of traced kernels");
  app.add_option("--only", arguments.only, "Cases whose description has one of these texts");
  app.add_option("--units", arguments.units, "How matrix units add up: chain, tree or by_place")
      ->check(CLI::IsMember(pagoda::kUnits));
  app.add_option("--seed", arguments.seed, "Of the orders drawn");
  CLI11_PARSE(app, argc, argv);
  const int status = pagoda::run(arguments);
  std::fflush(nullptr);
  std::_Exit(status);  // MLX's thread may hold the error of a task
}
