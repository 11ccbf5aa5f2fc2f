#include "cli/bench/bench_round.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>

#include "cli/bench/model_work.h"
#include "cli/bench/op_profile_table.h"
#include "cli/flags/flag_values.h"
#include "core/json.h"

namespace pagoda {
namespace {

std::vector<GenerationRequest> random_requests(const Engine& engine, const BenchFlags& flags,
                                               int num_prompts, int output_len) {
  std::mt19937_64 random(flags.engine.engine.seed);
  std::uniform_int_distribution<int> token(0, engine.limits().vocab_size - 1);
  std::vector<GenerationRequest> requests(num_prompts);
  for (GenerationRequest& request : requests) {
    request.prompt_token_ids.resize(flags.input_len);
    for (int& id : request.prompt_token_ids) id = token(random);
    request.sampling = {.temperature = 0, .max_tokens = output_len, .ignore_eos = true};
  }
  return requests;
}

// The number of unfinished sequences, counted down on the engine's thread.
struct Unfinished {
  std::mutex mutex;
  std::condition_variable none;
  std::size_t count = 0;
  Status error;
};

// Generates answers without text: token ids go in, and only the last event of each answer is
// handled. So the machine's cores work for the engine alone.
Status generate_all(Engine& engine, std::vector<GenerationRequest> requests) {
  const auto unfinished = std::make_shared<Unfinished>();
  unfinished->count = requests.size();
  const auto sink = [unfinished](const OutputEvent& event) {
    if (event.finish_reason == FinishReason::kNone) return;
    const std::lock_guard lock(unfinished->mutex);
    if (!event.error.ok()) unfinished->error = event.error;
    if (--unfinished->count == 0) unfinished->none.notify_one();
  };
  std::vector<RequestId> submitted;
  for (GenerationRequest& request : requests) {
    const Result<RequestId> id = engine.submit(std::move(request), sink);
    if (!id.ok()) {
      for (const RequestId each : submitted) engine.cancel(each);
      return id.status();
    }
    submitted.push_back(*id);
  }
  std::unique_lock lock(unfinished->mutex);
  unfinished->none.wait(lock, [&] { return unfinished->count == 0; });
  return unfinished->error;
}

// Waits until nothing runs. An answer's last event is sent before its step's figures are counted.
EngineStats stats_when_idle(const Engine& engine) {
  EngineStats stats = engine.stats();
  while (stats.healthy && stats.num_running + stats.num_waiting > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    stats = engine.stats();
  }
  return stats;
}

// Returns what the engine did between two snapshots.
BenchRound between(const EngineStats& before, const EngineStats& after) {
  const auto grown = [&](std::uint64_t EngineStats::*counter) {
    return static_cast<double>(after.*counter - before.*counter);
  };
  BenchRound round;
  round.prefill_s = after.prefill_s - before.prefill_s;
  round.decode_s = after.decode_s - before.decode_s;
  round.prompt_tokens = grown(&EngineStats::num_prompt_tokens);
  round.generated_tokens = grown(&EngineStats::num_generated_tokens);
  round.decode_steps = grown(&EngineStats::num_decode_steps);
  round.decode_tokens = grown(&EngineStats::num_decode_tokens);
  round.read_bytes =
      round.decode_steps * static_cast<double>(after.runner.weight_bytes_per_step) +
      static_cast<double>(after.runner.num_decode_expert_bytes -
                          before.runner.num_decode_expert_bytes) +
      static_cast<double>(after.runner.num_decode_kv_bytes - before.runner.num_decode_kv_bytes);
  return round;
}

// Counts the products of the prompts and of the decodes in the same steps, without the decodes'
// attention.
double prefill_products(const ModelConfig& config, const BenchRound& round, int num_prompts,
                        int input_len) {
  const double sampled_rows = round.generated_tokens - round.decode_tokens;
  const double decoded_rows = sampled_rows - num_prompts;
  return (round.prompt_tokens + decoded_rows) * layer_products_per_token(config) +
         sampled_rows * head_products_per_row(config) +
         num_prompts * attention_products(config, input_len);
}

double share(double figure, double limit) {
  return limit > 0 ? figure / limit : 0;
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

}  // namespace

void add_bench_flags(CLI::App& command, BenchFlags& flags) {
  flags.engine.engine.enable_prefix_caching = false;  // rounds repeat their prompts
  add_model_flags(command, flags.engine);
  add_batching_flags(command, flags.engine);
  command.add_option("--input-len", flags.input_len, "Tokens of each prompt")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--output-len", flags.output_len, "Tokens of each answer")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command.add_flag("--json", flags.as_json, "Print one JSON line");
  command.add_flag("--profile", flags.profiles,
                   "What each op cost, as a table: native backends only");
}

Result<std::unique_ptr<BenchedModel>> BenchedModel::load(const BenchFlags& flags) {
  std::unique_ptr<BenchedModel> bench(new BenchedModel(flags));
  EngineFlags engine = flags.engine;
  if (flags.profiles) bench->profile_ = std::make_shared<OpProfile>();
  engine.engine.op_profile = bench->profile_;
  engine.engine.max_queue = std::max(engine.engine.max_queue, flags.num_prompts);
  PAGODA_ASSIGN_OR_RETURN(bench->model_, pagoda::load(engine, Text::kTokenIdsWillDo));
  return bench;
}

Result<BenchRound> BenchedModel::run(int num_prompts, int output_len) {
  Engine& engine = *model_->engine;
  std::vector<GenerationRequest> requests =
      random_requests(engine, flags_, num_prompts, output_len);
  const MachineLimits limits_before = probe_.measure();
  const EngineStats before = stats_when_idle(engine);
  const Clock::TimePoint start = Clock::system().now();
  PAGODA_RETURN_IF_ERROR(generate_all(engine, std::move(requests)));
  const double total_s = seconds_between(start, Clock::system().now());
  BenchRound round = between(before, stats_when_idle(engine));
  round.limits = best_of(limits_before, probe_.measure());
  round.total_s = total_s;
  round.prefill_products = prefill_products(model_->config, round, num_prompts, flags_.input_len);
  return round;
}

namespace {

// Adds how many sequences fit in the cache: of max_model_len, and of this benchmark's length.
void add_kv_cache(const BenchedModel& bench, OrderedJson& figures) {
  const EngineLimits& limits = bench.model().engine->limits();
  const KvCacheInfo& cache = limits.kv_cache;
  const int context =
      std::min(bench.flags().input_len + bench.flags().output_len, limits.max_model_len);
  figures["kv_cache_dtype"] = kv_formats_name(cache.formats);
  figures["kv_cache_skipped_layers"] = cache.skipped_layers;
  figures["kv_bytes_per_token"] = cache.bytes_per_token;
  figures["max_model_len"] = limits.max_model_len;
  figures["kv_sequences_of_max_model_len"] = cache.num_sequences(limits.max_model_len);
  figures["kv_sequences"] = cache.num_sequences(context);
}

}  // namespace

OrderedJson bench_figures(const BenchedModel& bench, const BenchRound& round) {
  const MachineLimits& limits = round.limits;
  const double read_gb_per_s = per_second(round.read_bytes, round.decode_s) / 1e9;
  const double gmac_per_s = per_second(round.prefill_products, round.prefill_s) / 1e9;
  OrderedJson figures = {{"model", bench.model().name},
                         {"device", bench.model().device},
                         {"threads", limits.num_threads},
                         {"input_len", bench.flags().input_len},
                         {"output_len", bench.flags().output_len},
                         {"total_s", round.total_s},
                         {"prefill_s", round.prefill_s},
                         {"decode_s", round.decode_s},
                         {"prefill_tokens_per_s", per_second(round.prompt_tokens, round.prefill_s)},
                         {"decode_tokens_per_s", per_second(round.decode_tokens, round.decode_s)},
                         {"output_tokens_per_s", per_second(round.generated_tokens, round.total_s)},
                         {"total_token_throughput",
                          per_second(round.prompt_tokens + round.generated_tokens, round.total_s)},
                         {"read_gb_per_s", read_gb_per_s},
                         {"machine_read_gb_per_s", limits.read_gb_per_s},
                         {"read_share", share(read_gb_per_s, limits.read_gb_per_s)},
                         {"prefill_gmac_per_s", gmac_per_s},
                         {"machine_float32_gmac_per_s", limits.float32_gmac_per_s}};
  if (limits.bf16_gmac_per_s) figures["machine_bf16_gmac_per_s"] = *limits.bf16_gmac_per_s;
  if (limits.int16_gmac_per_s) figures["machine_int16_gmac_per_s"] = *limits.int16_gmac_per_s;
  if (limits.int8_gmac_per_s) figures["machine_int8_gmac_per_s"] = *limits.int8_gmac_per_s;
  figures["prefill_share"] = share(gmac_per_s, limits.product_gmac_per_s());
  figures["prefill_share_of"] = limits.bf16_gmac_per_s ? "bf16" : "float32";
  add_kv_cache(bench, figures);
  return figures;
}

void print_bench_figures(const OrderedJson& figures) {
  const auto number = [&](const std::string& key) { return figures.at(key).get<double>(); };
  std::string peaks;
  for (const char* type : {"float32", "bf16", "int16", "int8"}) {
    const std::string key = std::string("machine_") + type + "_gmac_per_s";
    if (!figures.contains(key)) continue;
    peaks += fmt::format("{}{:.0f} {}", peaks.empty() ? "" : ", ", number(key), type);
  }
  std::printf("prefill %9.1f tokens/s, %.1f GMAC/s: %.0f %% of the machine's %s peak (%s)\n",
              number("prefill_tokens_per_s"), number("prefill_gmac_per_s"),
              100 * number("prefill_share"),
              figures.at("prefill_share_of").get<std::string>().c_str(), peaks.c_str());
  std::printf("decode  %9.1f tokens/s, %.1f GB/s read: %.0f %% of the machine's %.1f\n",
              number("decode_tokens_per_s"), number("read_gb_per_s"), 100 * number("read_share"),
              number("machine_read_gb_per_s"));
  const std::size_t num_skipped = figures.at("kv_cache_skipped_layers").size();
  std::printf(
      "KV cache %s%s: %.0f bytes a token; room for %.0f sequences of max_model_len, %.0f "
      "tokens, or %.0f as long as here\n",
      figures.at("kv_cache_dtype").get<std::string>().c_str(),
      num_skipped == 0 ? "" : fmt::format(", bfloat16 in {} layers", num_skipped).c_str(),
      number("kv_bytes_per_token"), number("kv_sequences_of_max_model_len"),
      number("max_model_len"), number("kv_sequences"));
}

void add_profile(const BenchedModel& bench, const MachineLimits& limits, OrderedJson& figures) {
  if (bench.profile() == nullptr) return;
  if (bench.flags().as_json) {
    figures["profile"] = op_profile_json(*bench.profile(), limits);
  } else {
    std::printf("\n%s", op_profile_table(*bench.profile(), limits).c_str());
  }
}

}  // namespace pagoda
