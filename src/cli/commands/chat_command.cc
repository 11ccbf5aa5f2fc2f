// pagoda chat: a conversation in the terminal.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/commands/answer_printer.h"
#include "cli/commands/line_editor.h"
#include "cli/commands/timed_generation.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/prompt_spec.h"
#include "core/json.h"
#include "serving/answer_reader.h"

namespace pagoda {
namespace {

struct ChatFlags {
  EngineFlags engine;
  PromptSpec answer;  // without a prompt
  std::string system;
  std::optional<std::string> history_file;
};

// Ctrl-C ends the answer at its next piece of text or, between answers, the conversation. A second
// Ctrl-C during an answer, which may still wait for its first text, ends the process.
volatile std::sig_atomic_t interrupted = 0;

// Prints the answer as it arrives. Returns it as a message for the history, without its thought, as
// templates expect.
Result<OrderedJson> answer(ServedModel& model, const PromptSpec& spec,
                           const OrderedJson& messages) {
  PAGODA_ASSIGN_OR_RETURN(const PromptRequest request, make_chat_request(model, spec, messages));
  PAGODA_ASSIGN_OR_RETURN(auto generation, TextGeneration::start(model, request.text, [] {}));
  AnswerReader reader(request.parsing);
  AnswerPrinter printer(stdout, request.parsing);
  std::vector<AnswerPart> whole;
  const auto on_piece = [&](const TextPiece& piece) {
    const std::vector<AnswerPart> parts = reader.parts_of(piece);
    printer.print(parts);
    whole.insert(whole.end(), parts.begin(), parts.end());
    if (interrupted) generation->cancel();
  };
  PAGODA_RETURN_IF_ERROR(collect(*generation, Clock::system().now(), on_piece).status());
  printer.end();
  std::printf("\n");
  OrderedJson message = message_of(whole);
  message.erase("reasoning_content");
  return message;
}

Status converse(ChatFlags flags) {
  PAGODA_RETURN_IF_ERROR(read_named_files(flags.answer));
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(flags.engine));
  struct sigaction action = {};
  // Without SA_RESTART, so that the signal also ends a read of the terminal.
  action.sa_handler = [](int) {
    if (interrupted) {
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    }
    interrupted = 1;
  };
  sigaction(SIGINT, &action, nullptr);
  OrderedJson messages = OrderedJson::array();
  if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
  std::printf("%s on %s. An empty line or Ctrl-D ends the conversation, Ctrl-C an answer.\n\n",
              model->name.c_str(), model->device.c_str());
  LineEditor editor(flags.history_file ? std::filesystem::path(*flags.history_file)
                                       : default_history_file("chat"),
                    [] { return interrupted != 0; });
  bool is_kept = true;
  while (true) {
    interrupted = 0;
    const std::optional<std::string> line = editor.read();
    if (!line || line->empty()) break;
    if (const Status kept = editor.keep(*line); is_kept && !kept.ok()) {
      report_error(kept);
      is_kept = false;  // tells it only once
    }
    messages.push_back({{"role", "user"}, {"content", *line}});
    PAGODA_ASSIGN_OR_RETURN(OrderedJson message, answer(*model, flags.answer, messages));
    messages.push_back(std::move(message));
  }
  std::printf("\n");
  return ok_status();
}

}  // namespace

void add_chat_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App& command = *app.add_subcommand("chat", "A conversation in the terminal");
  add_model_flags(command, flags->engine);
  add_fetch_flag(command, flags->engine);
  add_batching_flags(command, flags->engine);
  add_sampling_flags(command, flags->engine);
  add_answer_flags(command, flags->answer);
  command.add_option("--system", flags->system, "A system message");
  command
      .add_option("--history-file", flags->history_file,
                  "Where lines that are typed are kept for the next time; \"\": nowhere")
      ->type_name(kPathType)
      ->default_str("~/.local/state/pagoda/chat_history");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = converse(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
