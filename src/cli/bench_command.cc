// pagoda bench: this machine's limits, and how close to them a model runs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/machine_limits.h"
#include "cli/report_error.h"
#include "cli/timed_generation.h"
#include "core/machine.h"

namespace pagoda {

using nlohmann::ordered_json;

namespace {

constexpr int kLatencyRounds = 3;  // the median one is printed

struct LatencyFlags {
  EngineFlags engine;
  int input_len = 512;
  int output_len = 128;
  int batch_size = 1;
  bool as_json = false;
};

struct LatencyRound {
  double prefill_s = 0;  // until the last sequence's first token
  double decode_s = 0;   // from there to the last token
};

std::vector<TextRequest> random_requests(const ServedModel& model, const LatencyFlags& flags) {
  std::mt19937_64 random(flags.engine.engine.seed);
  std::uniform_int_distribution<int> token(0, model.engine->limits().vocab_size - 1);
  std::vector<TextRequest> requests(flags.batch_size);
  for (TextRequest& request : requests) {
    request.generation.prompt_token_ids.resize(flags.input_len);
    for (int& id : request.generation.prompt_token_ids) id = token(random);
    request.generation.sampling = {
        .temperature = 0, .max_tokens = flags.output_len, .ignore_eos = true};
  }
  return requests;
}

Result<LatencyRound> run_round(ServedModel& model, const LatencyFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<TimedAnswer> answers,
                          generate_together(model, random_requests(model, flags)));
  LatencyRound round;
  double end_s = 0;
  for (const TimedAnswer& answer : answers) {
    round.prefill_s = std::max(round.prefill_s, answer.prefill_s);
    end_s = std::max(end_s, answer.prefill_s + answer.decode_s);
  }
  round.decode_s = end_s - round.prefill_s;
  return round;
}

ordered_json latency_figures(const ServedModel& model, const LatencyFlags& flags,
                             const LatencyRound& round, double machine_read_gb_per_s) {
  const EngineStats stats = model.engine->stats();
  const double steps = flags.output_len - 1;
  const double input_tokens = static_cast<double>(flags.batch_size) * flags.input_len;
  const double output_tokens = static_cast<double>(flags.batch_size) * flags.output_len;
  const double mean_context = flags.input_len + flags.output_len / 2.0;
  const double bytes_per_step =
      static_cast<double>(stats.weight_bytes_per_step) +
      flags.batch_size * mean_context * static_cast<double>(stats.kv_bytes_per_token);
  const bool decodes = steps > 0 && round.decode_s > 0;
  const double read_gb_per_s = decodes ? bytes_per_step * steps / round.decode_s / 1e9 : 0;
  return {{"model", model.name},
          {"device", model.device},
          {"input_len", flags.input_len},
          {"output_len", flags.output_len},
          {"batch_size", flags.batch_size},
          {"prefill_s", round.prefill_s},
          {"decode_s", round.decode_s},
          {"prefill_tokens_per_s", input_tokens / round.prefill_s},
          {"decode_tokens_per_s", decodes ? flags.batch_size * steps / round.decode_s : 0},
          {"output_tokens_per_s", output_tokens / (round.prefill_s + round.decode_s)},
          {"read_gb_per_s", read_gb_per_s},
          {"machine_read_gb_per_s", machine_read_gb_per_s},
          {"read_share", read_gb_per_s / machine_read_gb_per_s}};
}

Status bench_latency(const LatencyFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(flags.engine));
  LatencyFlags warm_up = flags;
  warm_up.output_len = std::min(flags.output_len, 4);
  PAGODA_RETURN_IF_ERROR(run_round(*model, warm_up).status());
  std::vector<std::pair<LatencyRound, double>> rounds;
  const int threads =
      flags.engine.engine.num_threads > 0 ? flags.engine.engine.num_threads : default_num_threads();
  for (int i = 0; i < kLatencyRounds; ++i) {
    const double limit_before = measure_read_gb_per_s(threads);
    PAGODA_ASSIGN_OR_RETURN(const LatencyRound round, run_round(*model, flags));
    rounds.emplace_back(round, std::max(limit_before, measure_read_gb_per_s(threads)));
  }
  std::sort(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) {
    return a.first.prefill_s + a.first.decode_s < b.first.prefill_s + b.first.decode_s;
  });
  const auto& [median, limit] = rounds[kLatencyRounds / 2];
  const ordered_json figures = latency_figures(*model, flags, median, limit);
  if (flags.as_json) {
    std::printf("%s\n", figures.dump().c_str());
    return ok_status();
  }
  std::printf("%s on %s, %d sequences of %d tokens in and %d out\n", model->name.c_str(),
              model->device.c_str(), flags.batch_size, flags.input_len, flags.output_len);
  std::printf(
      "prefill %8.1f tokens/s\ndecode  %8.1f tokens/s, %.1f GB/s read of the machine's %.1f (%.0f "
      "%%)\n",
      figures["prefill_tokens_per_s"].get<double>(), figures["decode_tokens_per_s"].get<double>(),
      figures["read_gb_per_s"].get<double>(), limit, 100 * figures["read_share"].get<double>());
  return ok_status();
}

ordered_json limits_json(const MachineLimits& limits) {
  ordered_json row = {{"threads", limits.num_threads},
                      {"read_gb_per_s", limits.read_gb_per_s},
                      {"float32_gmac_per_s", limits.float32_gmac_per_s}};
  if (limits.bf16_gmac_per_s) row["bf16_gmac_per_s"] = *limits.bf16_gmac_per_s;
  if (limits.int8_gmac_per_s) row["int8_gmac_per_s"] = *limits.int8_gmac_per_s;
  return row;
}

Status bench_machine(int max_threads, bool as_json) {
  if (max_threads == 0) max_threads = default_num_threads();
  ordered_json rows = ordered_json::array();
  if (!as_json) std::printf("threads   read GB/s   float32 GMAC/s   bf16 GMAC/s   int8 GMAC/s\n");
  for (int threads = 1; threads <= max_threads;
       threads = std::min(threads * 2, std::max(max_threads, threads + 1))) {
    const MachineLimits limits = measure_machine_limits(threads);
    rows.push_back(limits_json(limits));
    if (as_json) continue;
    std::printf("%7d %11.1f %16.1f %13.1f %13.1f\n", threads, limits.read_gb_per_s,
                limits.float32_gmac_per_s, limits.bf16_gmac_per_s.value_or(0),
                limits.int8_gmac_per_s.value_or(0));
  }
  if (as_json) {
    const ordered_json& all = rows.back();
    std::printf("%s\n",
                ordered_json{{"by_threads", rows}, {"machine_read_gb_per_s", all["read_gb_per_s"]}}
                    .dump()
                    .c_str());
  }
  return ok_status();
}

void add_latency(CLI::App& bench, CommandBody& body) {
  auto flags = std::make_shared<LatencyFlags>();
  CLI::App& command =
      *bench.add_subcommand("latency", "One batch of random tokens, without a server");
  add_model_flags(command, flags->engine);
  add_batching_flags(command, flags->engine);
  command.add_option("--input-len", flags->input_len, "Tokens of each prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--output-len", flags->output_len, "Tokens of each answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--batch-size", flags->batch_size, "Sequences together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_latency(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

void add_machine(CLI::App& bench, CommandBody& body) {
  struct MachineFlags {
    int threads = 0;
    bool as_json = false;
  };
  auto flags = std::make_shared<MachineFlags>();
  CLI::App& command = *bench.add_subcommand("machine", "This machine's limits, by thread count");
  command.add_option("--threads", flags->threads, "At most; 0: the physical cores")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_machine(flags->threads, flags->as_json);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, CommandBody& body) {
  CLI::App& bench = *app.add_subcommand("bench", "Figures beside the machine's limits");
  bench.require_subcommand(1);
  add_machine(bench, body);
  add_latency(bench, body);
}

}  // namespace pagoda
