// pagoda run: answers prompts, without a server.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <sstream>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/base/standard_output.h"
#include "cli/bench/op_profile_table.h"
#include "cli/commands/answer_printer.h"
#include "cli/commands/timed_generation.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/prompt_spec.h"
#include "cli/flags/prompt_text.h"
#include "core/json.h"
#include "serving/answer_reader.h"
#include "tensor/op_profile.h"

namespace pagoda {

using nlohmann::json;

namespace {

struct RunFlags {
  EngineFlags engine;
  PromptSpec prompt;
  std::string prompts_file;
  bool as_json = false;
  bool profiles = false;
};

json logprobs_json(const std::vector<TokenLogprobs>& logprobs) {
  json list = json::array();
  for (const TokenLogprobs& entry : logprobs) {
    json top = json::array();
    for (const TokenLogprob& other : entry.top) top.push_back({other.token_id, other.logprob});
    list.push_back({{"token_id", entry.chosen.token_id},
                    {"logprob", entry.chosen.logprob},
                    {"top", std::move(top)}});
  }
  return list;
}

json prompt_logprobs_json(const std::vector<std::optional<TokenLogprobs>>& logprobs) {
  json list = json::array();
  for (const auto& entry : logprobs)
    list.push_back(entry ? json(entry->chosen.logprob) : json(nullptr));
  return list;
}

// Splits a whole answer into its parts.
std::vector<AnswerPart> parts_of(const PromptRequest& prompt, const TimedAnswer& answer) {
  TextPiece whole = {.text = answer.text, .finish_reason = answer.finish_reason};
  return AnswerReader(prompt.parsing).parts_of(whole);
}

json answer_json(const ServedModel& model, const PromptRequest& prompt, const TimedAnswer& answer) {
  const TextRequest& request = prompt.text;
  const auto prompt_tokens = static_cast<double>(request.generation.prompt_token_ids.size());
  const auto decoded =
      answer.token_ids.empty() ? 0.0 : static_cast<double>(answer.token_ids.size() - 1);
  const RunnerStats runner = model.engine->stats().runner;
  const double bytes =
      static_cast<double>(runner.weight_bytes_per_step + runner.expert_bytes_per_token) * decoded;
  json line = {
      {"model", model.name},
      {"device", model.device},
      {"prompt_token_ids", request.generation.prompt_token_ids},
      {"token_ids", answer.token_ids},
      {"text", answer.text},
      {"finish_reason", finish_reason_name(answer.finish_reason)},
      {"timing",
       {{"load_s", model.load_s},
        {"prefill_s", answer.prefill_s},
        {"prefill_tokens_per_s", answer.prefill_s > 0 ? prompt_tokens / answer.prefill_s : 0.0},
        {"decode_s", answer.decode_s},
        {"decode_tokens_per_s", answer.decode_s > 0 ? decoded / answer.decode_s : 0.0},
        {"read_gb_per_s", answer.decode_s > 0 ? bytes / answer.decode_s / 1e9 : 0.0}}},
      {"logits_hash", fmt::format("{:016x}", answer.logits_hash)}};
  if (request.generation.sampling.logprobs) line["logprobs"] = logprobs_json(answer.logprobs);
  if (request.generation.sampling.prompt_logprobs)
    line["prompt_logprobs"] = prompt_logprobs_json(answer.prompt_logprobs);
  if (prompt.is_chat) line["message"] = message_of(parts_of(prompt, answer));
  return line;
}

// Reads the prompts that the flags name. `prompts`: the text of flags.prompts_file.
Result<std::vector<PromptRequest>> read_requests(const ServedModel& model, const RunFlags& flags,
                                                 const std::string& prompts) {
  std::vector<PromptRequest> requests;
  if (flags.prompts_file.empty()) {
    PAGODA_ASSIGN_OR_RETURN(PromptRequest request, make_prompt_request(model, flags.prompt));
    requests.push_back(std::move(request));
    return requests;
  }
  std::istringstream file(prompts);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("{}:{}", flags.prompts_file, number);
    Result<PromptSpec> spec = parse_prompt_line(line, flags.prompt);
    if (!spec.ok()) return spec.status().with_context(place);
    Result<PromptRequest> request = make_prompt_request(model, *spec);
    if (!request.ok()) return request.status().with_context(place);
    requests.push_back(*std::move(request));
  }
  if (requests.empty())
    return invalid_argument("[prompts-file] {}: holds no prompt", flags.prompts_file);
  return requests;
}

// Prints a line on stderr if more tokens were asked for than the context leaves. `which` is "" or
// " to prompt 2".
void say_if_beyond(const ServedModel& model, const PromptRequest& prompt,
                   const std::string& which) {
  const auto num_prompt_tokens = static_cast<int>(prompt.text.generation.prompt_token_ids.size());
  const int rest = model.engine->limits().max_model_len - num_prompt_tokens;
  if (!prompt.asked_tokens || *prompt.asked_tokens <= rest) return;
  std::fprintf(stderr, "[--max-tokens %d: the answer%s has at most %d, to the context's end]\n",
               *prompt.asked_tokens, which.c_str(), rest);
}

// Prints a line on stderr if an answer was cut off. `which` is "" or " to prompt 2".
void say_if_cut(const ServedModel& model, const TextRequest& request, const TimedAnswer& answer,
                const std::string& which = "") {
  if (answer.finish_reason != FinishReason::kLength) return;
  const auto length = request.generation.prompt_token_ids.size() + answer.token_ids.size();
  const int most = model.engine->limits().max_model_len;
  const std::string limit =
      length >= static_cast<std::size_t>(most)
          ? fmt::format("the context's end, after {} tokens", most)
          : fmt::format("--max-tokens {}", request.generation.sampling.max_tokens);
  std::fprintf(stderr, "[the answer%s stopped at %s]\n", which.c_str(), limit.c_str());
}

// Runs one prompt and prints its text as it arrives.
Status run_streamed(ServedModel& model, const PromptRequest& prompt) {
  const TextRequest& request = prompt.text;
  const Clock::TimePoint start = Clock::system().now();
  PAGODA_ASSIGN_OR_RETURN(auto generation, TextGeneration::start(model, request, [] {}));
  AnswerReader reader(prompt.parsing);
  AnswerPrinter printer(stdout, prompt.parsing);
  PAGODA_ASSIGN_OR_RETURN(const TimedAnswer answer,
                          collect(*generation, start, [&](const TextPiece& piece) {
                            printer.print(reader.parts_of(piece));
                          }));
  printer.end();
  const auto decoded = static_cast<double>(answer.token_ids.size()) - 1;
  std::fprintf(stderr, "[%zu prompt tokens in %.2f s, %zu more at %.1f tokens/s]\n",
               request.generation.prompt_token_ids.size(), answer.prefill_s,
               answer.token_ids.size(), answer.decode_s > 0 ? decoded / answer.decode_s : 0.0);
  say_if_cut(model, request, answer);
  return ok_status();
}

Status run_whole(ServedModel& model, const RunFlags& flags,
                 const std::vector<PromptRequest>& prompts) {
  std::vector<TextRequest> requests;
  requests.reserve(prompts.size());
  for (const PromptRequest& prompt : prompts) requests.push_back(prompt.text);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<TimedAnswer> answers,
                          generate_together(model, requests));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (flags.as_json) {
      write_answer(stdout, json_text(answer_json(model, prompts[i], answers[i])) + "\n");
      continue;
    }
    AnswerPrinter printer(stdout, prompts[i].parsing);
    printer.print(parts_of(prompts[i], answers[i]));
    printer.end();
    say_if_cut(model, requests[i], answers[i], fmt::format(" to prompt {}", i + 1));
  }
  return ok_status();
}

// Prints to stderr, because stdout is for answers.
void print_profile(const OpProfile& profile, int num_threads) {
  const MachineLimits limits = MachineProbe(num_threads).measure();
  std::fputs(op_profile_table(profile, limits).c_str(), stderr);
}

Status run(RunFlags flags) {
  const auto profile = flags.profiles ? std::make_shared<OpProfile>() : nullptr;
  flags.engine.engine.op_profile = profile;
  std::string prompts;
  PAGODA_RETURN_IF_ERROR(read_named_files(flags.prompt));
  if (flags.prompts_file.empty()) {
    PAGODA_RETURN_IF_ERROR(read_prompt(flags.prompt));
  } else {
    PAGODA_ASSIGN_OR_RETURN(prompts, read_prompt_text("prompts-file", flags.prompts_file));
  }
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model,
                          load(flags.engine, Text::kTokenIdsWillDo));
  PAGODA_ASSIGN_OR_RETURN(std::vector<PromptRequest> requests,
                          read_requests(*model, flags, prompts));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    TextRequest& request = requests[i].text;
    say_if_beyond(*model, requests[i],
                  requests.size() == 1 ? "" : fmt::format(" to prompt {}", i + 1));
    request.generation.hash_logits = flags.as_json;
    if (!request.generation.sampling.seed && flags.engine.engine.seed)
      request.generation.sampling.seed = flags.engine.engine.seed;
  }
  const bool streams = requests.size() == 1 && !flags.as_json;
  PAGODA_RETURN_IF_ERROR(streams ? run_streamed(*model, requests[0])
                                 : run_whole(*model, flags, requests));
  if (profile) print_profile(*profile, flags.engine.engine.num_threads);
  return ok_status();
}

}  // namespace

void add_run_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command = *app.add_subcommand("run", "Answer a prompt, or a file of them together");
  add_model_flags(command, flags->engine);
  add_fetch_flag(command, flags->engine);
  add_sampling_flags(command, flags->engine);
  add_batching_flags(command, flags->engine);
  add_prompt_flags(command, flags->prompt);
  command
      .add_option("--prompts-file", flags->prompts_file,
                  "A JSON object a line: prompt or prompt_ids, and any of these flags; -: standard "
                  "input")
      ->type_name(kPathType);
  command.add_flag("--json", flags->as_json, "Print one JSON line a prompt");
  command.add_flag("--profile", flags->profiles,
                   "What each op cost, as a table on stderr: native backends only");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = run(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
