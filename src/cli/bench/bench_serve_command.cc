// pagoda bench serve: a load of streamed completions for any OpenAI-compatible server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "bench_serve/completion_events.h"
#include "bench_serve/latency_plot.h"
#include "bench_serve/load_client.h"
#include "bench_serve/prompt_set.h"
#include "bench_serve/serve_figures.h"
#include "cli/base/report_error.h"
#include "cli/bench/bench_command.h"
#include "cli/flags/flag_values.h"
#include "core/json.h"
#include "core/progress_bar.h"

namespace pagoda {

using nlohmann::json;

namespace {

constexpr double kLeastRate = 1e-6;  // requests a second

struct BenchServeFlags {
  std::string base_url = "http://127.0.0.1:8000";
  std::string model;
  std::string api_key;
  bool is_insecure = false;
  PromptSetOptions prompts{.num_prompts = 100};
  LoadShape shape;
  int num_warmups = 0;
  bool ignore_eos = true;
  bool as_json = false;
  std::string plot_path;
};

// Returns the model that the user has named, or the first one that the server lists.
Result<std::string> find_model(const ServerAccess& server, const std::string& asked) {
  PAGODA_ASSIGN_OR_RETURN(const HttpAnswer answer, ask_server(server, "/v1/models"));
  if (!asked.empty()) return asked;
  const std::string place = server.url.text() + "/v1/models";
  if (answer.status != 200) {
    return unavailable("[serve] {}: expected a list of models, got HTTP {}: {}", place,
                       answer.status, error_message(answer.body));
  }
  const json body = parse_json(answer.body);
  const json::json_pointer id("/data/0/id");
  if (!body.is_object() || !body.contains(id) || !body[id].is_string()) {
    return unavailable("[serve] {}: expected a list of models, got: {}", place,
                       error_message(answer.body));
  }
  return body[id].get<std::string>();
}

// Asks POST /tokenize. `question` has the fields of Pagoda and vLLM, or those of llama-server.
std::optional<std::vector<int>> tokenize(const ServerAccess& server, const json& question) {
  const Result<HttpAnswer> answer = ask_server(server, "/tokenize", json_text(question));
  if (!answer.ok() || answer.value().status != 200) return {};
  const json body = parse_json(answer.value().body);
  if (!body.is_object() || !body.contains("tokens") || !body["tokens"].is_array()) return {};
  std::vector<int> ids;
  for (const json& id : body["tokens"]) {
    if (!id.is_number_integer()) return {};
    ids.push_back(id.get<int>());
  }
  return ids;
}

Encode server_encode(const ServerAccess& server, const std::string& model) {
  auto vllm = [=](const std::string& text) {
    return tokenize(server, {{"model", model}, {"prompt", text}, {"add_special_tokens", false}});
  };
  auto llama_server = [=](const std::string& text) {
    return tokenize(server, {{"content", text}, {"add_special", false}});
  };
  const auto has_tokens = [](const std::optional<std::vector<int>>& ids) {
    return ids && !ids->empty();
  };
  if (has_tokens(vllm("one word"))) return vllm;
  if (has_tokens(llama_server("one word"))) return llama_server;
  return [](const std::string&) -> std::optional<std::vector<int>> { return {}; };
}

LoadRequest load_request(const BenchPrompt& prompt, const std::string& model, bool ignore_eos) {
  json body = {{"model", model},
               {"max_tokens", prompt.output_len},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (prompt.token_ids.empty()) {
    body["prompt"] = prompt.text;
  } else {
    body["prompt"] = prompt.token_ids;
  }
  if (ignore_eos) body["ignore_eos"] = true;
  return {.body = json_text(body), .num_input_tokens = prompt.num_tokens};
}

LoadRun run_with_progress(const char* title, LoadOptions options,
                          const std::vector<LoadRequest>& requests) {
  ProgressBar bar(title);
  options.on_progress = [&](int num_done) {
    bar.show(static_cast<double>(num_done) / static_cast<double>(requests.size()),
             fmt::format("{} of {} requests", num_done, requests.size()));
  };
  return run_load(options, requests);
}

// Returns an error if a run has no usable figures.
Status check_run(const ServerAccess& server, const LoadRun& run) {
  const auto& records = run.records;
  const auto failed = std::find_if(records.begin(), records.end(),
                                   [](const RequestRecord& record) { return !record.completed(); });
  const auto num_failed =
      std::count_if(records.begin(), records.end(),
                    [](const RequestRecord& record) { return !record.completed(); });
  if (failed == records.end()) return ok_status();
  const std::string where = server.url.text() + "/v1/completions";
  if (num_failed == static_cast<std::ptrdiff_t>(records.size())) {
    return unavailable("[serve] {}: all of {} requests failed, the first with: {}", where,
                       num_failed, failed->error);
  }
  std::fprintf(stderr, "pagoda: [serve] %s: %td of %zu requests failed, the first with: %s\n",
               where.c_str(), num_failed, records.size(), failed->error.c_str());
  return ok_status();
}

OrderedJson settings_json(const BenchServeFlags& flags, const std::string& model) {
  OrderedJson settings = {
      {"base_url", flags.base_url},         {"model", model},
      {"dataset_name", flags.prompts.name}, {"num_prompts", flags.prompts.num_prompts},
      {"num_warmups", flags.num_warmups},   {"seed", flags.prompts.seed}};
  settings["request_rate"] = std::isfinite(flags.shape.request_rate)
                                 ? OrderedJson(flags.shape.request_rate)
                                 : OrderedJson("inf");
  settings["max_concurrency"] = flags.shape.max_concurrency > 0
                                    ? OrderedJson(flags.shape.max_concurrency)
                                    : OrderedJson(nullptr);
  return settings;
}

void print_figures(const BenchServeFlags& flags, const std::string& model, const LoadRun& run) {
  const ServeFigures figures = serve_figures(run.records, run.duration_s);
  if (!flags.as_json) {
    std::printf("%s", serve_figures_block(figures, flags.shape).c_str());
    return;
  }
  OrderedJson line = settings_json(flags, model);
  line.update(serve_figures_json(figures));
  line["output_tokens_per_s"] = figures.output_throughput;
  std::printf("%s\n", json_text(line).c_str());
}

void say_who_counted(const LoadRun& run) {
  const auto guessed = std::count_if(
      run.records.begin(), run.records.end(),
      [](const RequestRecord& record) { return record.completed() && !record.counted_by_server; });
  if (guessed == 0) return;
  std::fprintf(stderr,
               "pagoda: [serve] %td answers came without usage: their tokens are events counted\n",
               guessed);
}

Status write_plot(const BenchServeFlags& flags, const std::string& model, const LoadRun& run) {
  if (flags.plot_path.empty()) return ok_status();
  std::ofstream file(flags.plot_path, std::ios::trunc);
  file << latency_plot_svg(run.records,
                           fmt::format("{}, {}: {} requests in {:.1f} s", model, flags.prompts.name,
                                       run.records.size(), run.duration_s));
  file.flush();
  if (!file) return unavailable("[plot] {}: cannot be written", flags.plot_path);
  return ok_status();
}

Status bench_serve(const BenchServeFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const ServerAccess server,
                          make_server_access("base-url", flags.base_url, flags.api_key,
                                             /*verifies=*/!flags.is_insecure));
  PAGODA_RETURN_IF_ERROR(check_prompt_set(flags.prompts));
  PAGODA_ASSIGN_OR_RETURN(const std::string model, find_model(server, flags.model));
  PromptSetOptions prompt_options = flags.prompts;
  prompt_options.num_prompts += flags.num_warmups;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<BenchPrompt> prompts,
                          make_prompts(prompt_options, server_encode(server, model)));
  std::vector<LoadRequest> requests, warm_ups;
  for (const BenchPrompt& prompt : prompts) {
    const bool is_counted = static_cast<int>(requests.size()) < flags.prompts.num_prompts;
    (is_counted ? requests : warm_ups).push_back(load_request(prompt, model, flags.ignore_eos));
  }
  LoadOptions options = {.server = server,
                         .shape = {.max_concurrency = flags.shape.max_concurrency},
                         .seed = flags.prompts.seed};
  const LoadRun warm_up = run_with_progress("warming up", options, warm_ups);
  if (warm_up.interrupted) return cancelled("[serve] interrupted while warming up");
  PAGODA_RETURN_IF_ERROR(check_run(server, warm_up));
  options.shape = flags.shape;
  const LoadRun run = run_with_progress("measuring", options, requests);
  if (!run.interrupted) PAGODA_RETURN_IF_ERROR(check_run(server, run));
  say_who_counted(run);
  print_figures(flags, model, run);
  PAGODA_RETURN_IF_ERROR(write_plot(flags, model, run));
  if (!run.interrupted) return ok_status();
  return cancelled("[serve] interrupted: {} of {} requests were done", run.records.size(),
                   requests.size());
}

void add_server_flags(CLI::App& command, BenchServeFlags& flags) {
  command.add_option("--base-url", flags.base_url, "The server: http://HOST:PORT, or https")
      ->capture_default_str();
  command.add_flag("--insecure", flags.is_insecure,
                   "Take any certificate of an https server, as one that has signed its own");
  command.add_option("--model", flags.model, "By default the first that the server lists");
  command.add_option("--api-key", flags.api_key, "By default OPENAI_API_KEY of the environment")
      ->envname("OPENAI_API_KEY");
  // Every subcommand that runs a model takes these flags; here the server decides.
  command.add_option("--device", "Accepted; the server chooses");
  command.add_option("--threads", "Accepted; one does");
  command.add_option("--seed", flags.prompts.seed, "Of the prompts and the arrivals")
      ->transform(whole_number<std::uint64_t>())
      ->capture_default_str();
}

void add_load_flags(CLI::App& command, BenchServeFlags& flags) {
  command.add_option("--num-prompts", flags.prompts.num_prompts, "Requests that count")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--request-rate", flags.shape.request_rate,
                  "Requests a second, as a Poisson process; inf: all at once")
      ->transform(real_number(kLeastRate))
      ->capture_default_str();
  command
      .add_option("--max-concurrency", flags.shape.max_concurrency,
                  "Requests in flight at most; 0: no limit")
      ->transform(whole_number(0, 1 << 20))
      ->capture_default_str();
  command.add_option("--num-warmups", flags.num_warmups, "Requests before them that do not count")
      ->transform(whole_number(0, 1 << 20))
      ->capture_default_str();
  command.add_flag("--ignore-eos,!--no-ignore-eos", flags.ignore_eos,
                   "Answers as long as asked, the default; else as long as the model likes");
}

void add_prompt_flags(CLI::App& command, BenchServeFlags& flags) {
  PromptSetOptions& prompts = flags.prompts;
  command.add_option("--dataset-name", prompts.name, "Prompts and their lengths")
      ->check(one_of({"random", "sharegpt", "sonnet", "prefix_repetition"}))
      ->capture_default_str();
  command
      .add_option("--dataset-path", prompts.path,
                  "Of sharegpt: its JSON; of sonnet: a text of lines")
      ->type_name(kPathType);
  const CLI::Validator length = whole_number(1, 1 << 20);
  command
      .add_option("--input-len", prompts.input_len,
                  "Tokens of a prompt; by default 1024, of sonnet 550; sharegpt has its own")
      ->transform(length);
  command
      .add_option("--output-len", prompts.output_len,
                  "Tokens of an answer; by default 128, of sonnet 150, of sharegpt the data's")
      ->transform(length);
  command
      .add_option("--prefix-len", prompts.prefix_len,
                  "Tokens that prompts share; of prefix_repetition by default half of them, of "
                  "sonnet 200")
      ->transform(length);
  command.add_option("--num-prefixes", prompts.num_prefixes, "Of prefix_repetition")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
}

}  // namespace

void add_bench_serve(CLI::App& bench, CommandBody& body) {
  auto flags = std::make_shared<BenchServeFlags>();
  CLI::App& command = *bench.add_subcommand(
      "serve", "Streamed requests to any OpenAI-compatible server, and vLLM's figures of them");
  add_server_flags(command, *flags);
  add_load_flags(command, *flags);
  add_prompt_flags(command, *flags);
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.add_option("--plot", flags->plot_path, "Write an SVG of the latencies over time there")
      ->type_name(kPathType);
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_serve(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
