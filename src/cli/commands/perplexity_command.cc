// pagoda perplexity: how well a model predicts a text.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/commands/timed_generation.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/prompt_text.h"
#include "core/json.h"
#include "core/progress_bar.h"

namespace pagoda {
namespace {

constexpr int kDefaultContext = 1024;  // tokens

struct PerplexityFlags {
  EngineFlags engine;
  std::string file;
  std::string compared_dtype;  // as --kv-cache-dtype takes it; "": nothing is compared
  int context = kDefaultContext;
  bool as_json = false;
};

struct Score {
  std::string kv_cache_dtype;
  std::size_t num_tokens = 0;
  std::vector<double> logprobs;  // of the scored tokens

  // Returns the negative log-likelihood, in nats.
  double nll() const { return -std::accumulate(logprobs.begin(), logprobs.end(), 0.0); }
  double perplexity() const { return std::exp(nll() / static_cast<double>(logprobs.size())); }
};

Result<Score> score(const PerplexityFlags& flags, const EngineFlags& engine,
                    const std::string& text) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(engine));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> ids, model->tokenizer->encode(text));
  ProgressBar bar("scoring");
  Score total = {.kv_cache_dtype = kv_formats_name(model->engine->limits().kv_cache.formats),
                 .num_tokens = ids.size(),
                 .logprobs = {}};
  const auto context = static_cast<std::size_t>(flags.context);
  for (std::size_t begin = 0; begin < ids.size(); begin += context) {
    const std::size_t end = std::min(ids.size(), begin + context);
    TextRequest request;
    request.generation.prompt_token_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                               ids.begin() + static_cast<std::ptrdiff_t>(end));
    request.generation.sampling = {.temperature = 0, .max_tokens = 0, .prompt_logprobs = 0};
    PAGODA_ASSIGN_OR_RETURN(auto generation,
                            TextGeneration::start(*model, std::move(request), [] {}));
    PAGODA_ASSIGN_OR_RETURN(const TimedAnswer answer, collect(*generation, Clock::system().now()));
    for (const auto& entry : answer.prompt_logprobs) {
      if (entry) total.logprobs.push_back(static_cast<double>(entry->chosen.logprob));
    }
    bar.show(static_cast<double>(end) / static_cast<double>(ids.size()));
  }
  return total;
}

// A score compared with that of another KV cache format.
struct Comparison {
  std::string kv_cache_dtype;  // the other format's
  double perplexity = 0;       // the other format's
  double ratio = 0;            // this score's perplexity over the other format's
  double mean_difference = 0;  // of log-probabilities
  double largest_difference = 0;
};

Comparison compare(const Score& score, const Score& other) {
  Comparison result = {.kv_cache_dtype = other.kv_cache_dtype, .perplexity = other.perplexity()};
  result.ratio = score.perplexity() / result.perplexity;
  for (std::size_t i = 0; i < score.logprobs.size(); ++i) {
    const double difference = std::abs(score.logprobs[i] - other.logprobs[i]);
    result.mean_difference += difference / static_cast<double>(score.logprobs.size());
    result.largest_difference = std::max(result.largest_difference, difference);
  }
  return result;
}

// Scores the text again with --compare's format, and compares the two scores.
Result<std::optional<Comparison>> compare_formats(const PerplexityFlags& flags,
                                                  const std::string& text, const Score& total) {
  if (flags.compared_dtype.empty()) return std::optional<Comparison>();
  EngineFlags engine = flags.engine;
  engine.kv_formats = {.dtype = flags.compared_dtype,
                       .skip_layers = flags.engine.kv_formats.skip_layers};
  PAGODA_ASSIGN_OR_RETURN(const Score other, score(flags, engine, text));
  return std::optional(compare(total, other));
}

void print_text(const PerplexityFlags& flags, const Score& total,
                const std::optional<Comparison>& compared) {
  std::printf("perplexity %.6f over %zu tokens of %s\n", total.perplexity(), total.logprobs.size(),
              flags.file.c_str());
  if (!compared) return;
  std::printf(
      "KV cache %s beside %s, whose perplexity is %.6f: ratio %.6f; log-probabilities differ by "
      "%.6f in the mean, %.6f at most\n",
      total.kv_cache_dtype.c_str(), compared->kv_cache_dtype.c_str(), compared->perplexity,
      compared->ratio, compared->mean_difference, compared->largest_difference);
}

Status perplexity(const PerplexityFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_prompt_text("perplexity", flags.file));
  PAGODA_ASSIGN_OR_RETURN(const Score total, score(flags, flags.engine, text));
  if (total.logprobs.empty())
    return invalid_argument("[perplexity] {}: expected two tokens at least, got {}", flags.file,
                            total.num_tokens);
  PAGODA_ASSIGN_OR_RETURN(const std::optional<Comparison> compared,
                          compare_formats(flags, text, total));
  if (!flags.as_json) {
    print_text(flags, total, compared);
    return ok_status();
  }
  OrderedJson line = {
      {"file", flags.file},
      {"context", flags.context},
      {"num_tokens", total.num_tokens},
      {"scored_tokens", total.logprobs.size()},
      {"nll", total.nll()},
      {"perplexity", total.perplexity()},
      {"method",
       fmt::format("windows of {} tokens without overlap; each window's first token is not scored",
                   flags.context)}};
  if (compared) {
    line["kv_cache_dtype"] = total.kv_cache_dtype;
    line["compared_kv_cache_dtype"] = compared->kv_cache_dtype;
    line["compared_perplexity"] = compared->perplexity;
    line["perplexity_ratio"] = compared->ratio;
    line["mean_logprob_difference"] = compared->mean_difference;
    line["largest_logprob_difference"] = compared->largest_difference;
  }
  std::printf("%s\n", json_text(line).c_str());
  return ok_status();
}

}  // namespace

void add_perplexity_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App& command = *app.add_subcommand("perplexity", "How well a model predicts a text");
  add_model_flags(command, flags->engine);
  add_batching_flags(command, flags->engine);
  command.add_option("--file", flags->file, "The text, UTF-8; -: standard input")
      ->type_name(kPathType)
      ->required();
  command.add_option("--context", flags->context, "Tokens of a window")
      ->transform(whole_number(2, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--compare", flags->compared_dtype,
                  "A format of the KV cache, as --kv-cache-dtype takes it, to score the text with "
                  "too; the differences are printed")
      ->check(kv_formats_validator());
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = perplexity(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
