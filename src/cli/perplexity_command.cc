// pagoda perplexity: how well a model predicts a text.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/flag_values.h"
#include "cli/prompt_text.h"
#include "cli/report_error.h"
#include "cli/timed_generation.h"
#include "core/progress_bar.h"

namespace pagoda {

namespace {

constexpr int kDefaultContext = 1024;  // tokens

struct PerplexityFlags {
  EngineFlags engine;
  std::string file;
  int context = kDefaultContext;
  bool as_json = false;
};

struct Score {
  std::size_t num_tokens = 0;
  std::size_t scored_tokens = 0;
  double nll = 0;  // negative log-likelihood, in nats
};

Result<Score> score(const PerplexityFlags& flags, const std::string& text) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(flags.engine));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> ids, model->tokenizer->encode(text));
  ProgressBar bar("scoring");
  Score total = {.num_tokens = ids.size()};
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
      if (!entry) continue;
      total.nll -= static_cast<double>(entry->chosen.logprob);
      ++total.scored_tokens;
    }
    bar.show(static_cast<double>(end) / static_cast<double>(ids.size()));
  }
  return total;
}

Status perplexity(const PerplexityFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_prompt_text("perplexity", flags.file));
  PAGODA_ASSIGN_OR_RETURN(const Score total, score(flags, text));
  if (total.scored_tokens == 0)
    return invalid_argument("[perplexity] {}: expected two tokens at least, got {}", flags.file,
                            total.num_tokens);
  const double value = std::exp(total.nll / static_cast<double>(total.scored_tokens));
  if (!flags.as_json) {
    std::printf("perplexity %.6f over %zu tokens of %s\n", value, total.scored_tokens,
                flags.file.c_str());
    return ok_status();
  }
  const nlohmann::ordered_json line = {
      {"file", flags.file},
      {"context", flags.context},
      {"num_tokens", total.num_tokens},
      {"scored_tokens", total.scored_tokens},
      {"nll", total.nll},
      {"perplexity", value},
      {"method",
       fmt::format("windows of {} tokens without overlap; each window's first token is not scored",
                   flags.context)}};
  std::printf("%s\n",
              line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  return ok_status();
}

}  // namespace

void add_perplexity_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App& command = *app.add_subcommand("perplexity", "How well a model predicts a text");
  add_model_flags(command, flags->engine);
  add_batching_flags(command, flags->engine);
  command.add_option("--file", flags->file, "The text, UTF-8; -: standard input")->required();
  command.add_option("--context", flags->context, "Tokens of a window")
      ->transform(whole_number(2, 1 << 20))
      ->capture_default_str();
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = perplexity(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
