// pagoda bench latency: one batch of equal prompts, several times.
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

struct LatencyFlags {
  BenchFlags bench;
  int num_rounds = 3;
};

// Returns each phase's figures from its median round, with the limits measured beside that round.
BenchRound median_of(std::vector<BenchRound> rounds) {
  const auto median_by = [&](double BenchRound::*seconds) {
    std::sort(rounds.begin(), rounds.end(),
              [&](const BenchRound& a, const BenchRound& b) { return a.*seconds < b.*seconds; });
    return rounds[rounds.size() / 2];
  };
  const BenchRound prefill = median_by(&BenchRound::prefill_s);
  BenchRound median = median_by(&BenchRound::decode_s);
  median.prefill_s = prefill.prefill_s;
  median.prefill_products = prefill.prefill_products;
  const double read_gb_per_s = median.limits.read_gb_per_s;
  median.limits = prefill.limits;
  median.limits.read_gb_per_s = read_gb_per_s;
  median.total_s = median_by(&BenchRound::total_s).total_s;
  return median;
}

Status bench_latency(const LatencyFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<BenchedModel> bench,
                          BenchedModel::load(flags.bench));
  const int batch_size = flags.bench.num_prompts;
  PAGODA_RETURN_IF_ERROR(bench->run(batch_size, std::min(flags.bench.output_len, 4)).status());
  if (bench->profile()) bench->profile()->clear();
  std::vector<BenchRound> rounds;
  MachineLimits limits;
  for (int i = 0; i < flags.num_rounds; ++i) {
    PAGODA_ASSIGN_OR_RETURN(const BenchRound round, bench->run(batch_size, flags.bench.output_len));
    limits = i == 0 ? round.limits : best_of(limits, round.limits);
    rounds.push_back(round);
  }
  OrderedJson figures = bench_figures(*bench, median_of(std::move(rounds)));
  figures["batch_size"] = batch_size;
  if (!flags.bench.as_json) {
    std::printf("%s on %s, %d threads: %d sequences of %d tokens in and %d out\n",
                bench->model().name.c_str(), bench->model().device.c_str(), limits.num_threads,
                batch_size, flags.bench.input_len, flags.bench.output_len);
    print_bench_figures(figures);
  }
  add_profile(*bench, limits, figures);
  if (flags.bench.as_json) std::printf("%s\n", json_text(figures).c_str());
  return ok_status();
}

}  // namespace

void add_bench_latency(CLI::App& bench, CommandBody& body) {
  auto flags = std::make_shared<LatencyFlags>();
  CLI::App& command =
      *bench.add_subcommand("latency", "One batch of random tokens, without a server");
  add_bench_flags(command, flags->bench);
  command.add_option("--batch-size", flags->bench.num_prompts, "Sequences together")
      ->transform(whole_number(1, 4096))
      ->capture_default_str();
  command
      .add_option("--rounds", flags->num_rounds, "After a first one; each phase's median counts")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_latency(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
