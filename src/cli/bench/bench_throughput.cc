// pagoda bench throughput: many prompts, submitted all at once.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/base/report_error.h"
#include "cli/bench/bench_command.h"
#include "cli/bench/bench_round.h"
#include "cli/flags/flag_values.h"
#include "core/json.h"

namespace pagoda {
namespace {

// Returns the figures, named as in vLLM's benchmarks, and those of each phase.
OrderedJson throughput_figures(const BenchedModel& bench, const BenchRound& round) {
  OrderedJson figures = bench_figures(bench, round);
  const double num_prompts = bench.flags().num_prompts;
  figures["num_prompts"] = bench.flags().num_prompts;
  figures["duration"] = round.total_s;
  figures["completed"] = bench.flags().num_prompts;
  figures["total_input_tokens"] = static_cast<std::int64_t>(round.prompt_tokens);
  figures["total_output_tokens"] = static_cast<std::int64_t>(round.generated_tokens);
  figures["request_throughput"] = num_prompts / round.total_s;
  figures["output_throughput"] = round.generated_tokens / round.total_s;
  return figures;
}

Status bench_throughput(const BenchFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<BenchedModel> bench, BenchedModel::load(flags));
  // The warm-up takes the costs that only a first step has: touching pages, waking threads.
  const int warm_up = std::min(flags.num_prompts, 2);
  PAGODA_RETURN_IF_ERROR(bench->run(warm_up, std::min(flags.output_len, 2)).status());
  if (bench->profile()) bench->profile()->clear();
  PAGODA_ASSIGN_OR_RETURN(const BenchRound round, bench->run(flags.num_prompts, flags.output_len));
  OrderedJson figures = throughput_figures(*bench, round);
  if (!flags.as_json) {
    std::printf("%s on %s, %d threads: %d prompts of %d tokens in and %d out\n",
                bench->model().name.c_str(), bench->model().device.c_str(),
                round.limits.num_threads, flags.num_prompts, flags.input_len, flags.output_len);
    std::printf("%.2f s: %.2f requests/s, %.1f tokens/s, %.1f output tokens/s\n", round.total_s,
                figures["request_throughput"].get<double>(),
                figures["total_token_throughput"].get<double>(),
                figures["output_throughput"].get<double>());
    print_bench_figures(figures);
  }
  add_profile(*bench, round.limits, figures);
  if (flags.as_json) std::printf("%s\n", json_text(figures).c_str());
  return ok_status();
}

}  // namespace

void add_bench_throughput(CLI::App& bench, CommandBody& body) {
  auto flags = std::make_shared<BenchFlags>();
  flags->num_prompts = 64;
  CLI::App& command = *bench.add_subcommand(
      "throughput", "Many random prompts, submitted all at once, without a server");
  add_bench_flags(command, *flags);
  command.add_option("--num-prompts", flags->num_prompts, "Prompts submitted")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_throughput(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
