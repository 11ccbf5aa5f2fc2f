// pagoda_op_bench: the large op cases on one backend. A case is verified against the reference
// before it is timed. Its line ends with its share of the machine's limit that binds it: reading
// memory, or products in the widest dot-product instruction that it is held to.
//
// A case of few tokens reads each weight or cache entry once. So it is timed over enough copies of
// its inputs to come from memory; one of many tokens stays where the cache keeps it.
//
//   pagoda_op_bench [--backend cpu] [--threads 2] [--op linear] [--only TEXT]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "backend/backend.h"
#include "cli/bench/machine_limits.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewTokens = 32;
constexpr double kColdBytes = 128e6;  // past any cache worth counting on
constexpr double kMaxCopies = 1024;

struct Options {
  std::string backend = "cpu";
  int threads = 0;
  std::string op;
  std::string only;
};

Status verify(Exec& reference, Exec& exec, const OpCase& op_case) {
  const std::vector<int> tokens = all_tokens(op_case);
  PAGODA_ASSIGN_OR_RETURN(const auto expected, run_case(reference, op_case, tokens));
  PAGODA_ASSIGN_OR_RETURN(const auto actual, run_case(exec, op_case, tokens));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float error = relative_error(actual[i], expected[i]);
    if (!(error <= op_case.tolerance.of(exec.backend()))) {
      return internal_error("[op_bench] {} {}: expected an error of {} at most, got {}", op_case.op,
                            op_case.description, op_case.tolerance.of(exec.backend()), error);
    }
  }
  return ok_status();
}

Result<std::vector<CaseRun>> prepare_copies(Exec& exec, const OpCase& op_case) {
  const bool is_cold = op_case.num_tokens <= kFewTokens && op_case.bytes > 0;
  const double count = is_cold ? std::clamp(kColdBytes / op_case.bytes, 1.0, kMaxCopies) : 1;
  std::vector<CaseRun> copies;
  while (static_cast<double>(copies.size()) < count) {
    PAGODA_ASSIGN_OR_RETURN(CaseRun copy, op_case.prepare(exec, all_tokens(op_case)));
    copies.push_back(std::move(copy));
  }
  return copies;
}

// Returns the seconds of the fastest run in half a second of runs, which other work on the machine
// disturbs least.
Result<double> time_case(Exec& exec, const OpCase& op_case) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<CaseRun> copies, prepare_copies(exec, op_case));
  std::size_t next = 0;
  const auto once = [&]() -> Status {
    const std::vector<Tensor> outputs = copies[next++ % copies.size()]();
    PAGODA_RETURN_IF_ERROR(exec.evaluate(outputs));
    for (const Tensor& output : outputs) PAGODA_RETURN_IF_ERROR(exec.read(output).status());
    return ok_status();
  };
  PAGODA_RETURN_IF_ERROR(once());
  std::vector<double> seconds;
  double total = 0;
  while (total < 0.5 || seconds.size() < 5) {
    const auto begin = Clock::now();
    PAGODA_RETURN_IF_ERROR(once());
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    total += seconds.back();
  }
  return *std::min_element(seconds.begin(), seconds.end());
}

// Returns "43 % of 78 GB/s", or of GMAC/s, whichever is nearer to its limit.
std::string share_of_limit(const OpCase& op_case, double seconds, const MachineLimits& limits) {
  const double read = op_case.bytes / seconds * 1e-9 / limits.read_gb_per_s;
  const double products = op_case.flops / 2 / seconds * 1e-9 / limits.product_gmac_per_s();
  if (products > read)
    return fmt::format("{:>4.0f} % of {:.0f} GMAC/s", 100 * products, limits.product_gmac_per_s());
  return fmt::format("{:>4.0f} % of {:.0f} GB/s", 100 * read, limits.read_gb_per_s);
}

Result<Backend> parse_backend(const std::string& name) {
  for (const Backend backend : kBackends) {
    if (backend_name(backend) == name) return backend;
  }
  return invalid_argument("[op_bench] --backend: expected reference, cpu, mlx or cuda, got {}",
                          name);
}

Status run_all(const Options& options) {
  PAGODA_ASSIGN_OR_RETURN(const Backend backend, parse_backend(options.backend));
  PAGODA_ASSIGN_OR_RETURN(const auto reference, make_exec({.backend = Backend::kReference}));
  PAGODA_ASSIGN_OR_RETURN(const auto exec,
                          make_exec({.backend = backend, .num_threads = options.threads}));
  const MachineProbe probe(exec->num_threads());
  fmt::print("{} on {} threads\n{:<74} {:>10} {:>8} {:>8}   {}\n", options.backend,
             exec->num_threads(), "case", "us", "GB/s", "GMAC/s", "share of the limit");
  for (const OpCase& op_case : all_op_cases()) {
    const std::string name = op_case.op + " " + op_case.description;
    if (!op_case.is_large || (!options.op.empty() && op_case.op != options.op)) continue;
    if (name.find(options.only) == std::string::npos) continue;
    PAGODA_RETURN_IF_ERROR(verify(*reference, *exec, op_case));
    const MachineLimits before = probe.measure();
    PAGODA_ASSIGN_OR_RETURN(const double seconds, time_case(*exec, op_case));
    const MachineLimits limits = best_of(before, probe.measure());
    fmt::print("{:<74} {:>10.1f} {:>8.2f} {:>8.2f}   {}\n", name, seconds * 1e6,
               op_case.bytes / seconds * 1e-9, op_case.flops / 2 / seconds * 1e-9,
               share_of_limit(op_case, seconds, limits));
  }
  return ok_status();
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  pagoda::Options options;
  CLI::App app("The large op cases on one backend, verified and timed");
  app.add_option("--backend", options.backend, "reference, cpu, mlx or cuda");
  app.add_option("--threads", options.threads, "Worker threads; 0: what the machine has");
  app.add_option("--op", options.op, "Only this op");
  app.add_option("--only", options.only, "Only cases whose name contains this");
  CLI11_PARSE(app, argc, argv);
  const pagoda::Status status = pagoda::run_all(options);
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  return 0;
}
