// pagoda chat: a conversation in the terminal.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/prompt_spec.h"
#include "cli/report_error.h"
#include "cli/standard_output.h"
#include "cli/timed_generation.h"

namespace pagoda {

using nlohmann::ordered_json;  // templates may print keys in order

namespace {

struct ChatFlags {
  EngineFlags engine;
  std::string system;
};

// Ctrl-C ends the answer at its next text, or the conversation where nothing is answered; a second
// one during an answer, which may still wait for its first text, ends the process.
volatile std::sig_atomic_t interrupted = 0;

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<std::string> answer(ServedModel& model, const ordered_json& messages) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<int> prompt, encode_chat(model, dump(messages)));
  const int room = model.engine->limits().max_model_len - static_cast<int>(prompt.size());
  if (room < 1)
    return invalid_argument("[chat] the conversation is longer than the context of {} tokens",
                            model.engine->limits().max_model_len);
  PromptSpec spec = {.prompt_ids = std::move(prompt), .max_tokens = room};
  PAGODA_ASSIGN_OR_RETURN(const TextRequest request, make_text_request(model, spec));
  PAGODA_ASSIGN_OR_RETURN(auto generation, TextGeneration::start(model, request, [] {}));
  PAGODA_ASSIGN_OR_RETURN(const TimedAnswer whole,
                          collect(*generation, Clock::system().now(), [&](const std::string& text) {
                            write_answer(stdout, text);
                            if (interrupted) generation->cancel();
                          }));
  std::printf("\n\n");
  return whole.text;
}

Status converse(const ChatFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(flags.engine));
  struct sigaction action = {};
  // Without SA_RESTART: it also ends a read of the terminal.
  action.sa_handler = [](int) {
    if (interrupted) {
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    }
    interrupted = 1;
  };
  sigaction(SIGINT, &action, nullptr);
  ordered_json messages = ordered_json::array();
  if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
  std::printf("%s on %s. An empty line or Ctrl-D ends the conversation, Ctrl-C an answer.\n\n",
              model->name.c_str(), model->device.c_str());
  for (std::string line;;) {
    std::printf("> ");
    std::fflush(stdout);
    interrupted = 0;
    if (!std::getline(std::cin, line) || line.empty()) break;
    messages.push_back({{"role", "user"}, {"content", line}});
    const Result<std::string> text = answer(*model, messages);
    if (!text.ok()) return text.status();
    messages.push_back({{"role", "assistant"}, {"content", *text}});
  }
  std::printf("\n");
  return ok_status();
}

}  // namespace

void add_chat_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App& command = *app.add_subcommand("chat", "A conversation in the terminal");
  add_model_flags(command, flags->engine);
  add_sampling_flags(command, flags->engine);
  command.add_option("--system", flags->system, "A system message");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = converse(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
