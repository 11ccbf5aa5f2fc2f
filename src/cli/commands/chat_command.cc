// pagoda chat: a conversation in the terminal, or with lines from a pipe.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/base/standard_output.h"
#include "cli/commands/answer_printer.h"
#include "cli/commands/chat_conversation.h"
#include "cli/commands/line_editor.h"
#include "cli/commands/timed_generation.h"
#include "cli/commands/typed_input.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/prompt_spec.h"
#include "core/nearest_name.h"
#include "hub/model_store.h"
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

void listen_for_interruptions() {
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
}

// The conversation of one process. Between a terminal's prompts it also tells what commands did;
// lines from a pipe get answers alone on stdout, and all else on stderr.
class Chat {
 public:
  Chat(const ChatFlags& flags, ServedModel& model)
      : spec_(flags.answer),
        model_(model),
        editor_(flags.history_file ? std::filesystem::path(*flags.history_file)
                                   : default_history_file("chat"),
                [] { return interrupted != 0; }) {
    conversation_.set_system(flags.system);
  }

  // Talks until the input ends.
  Status run();

 private:
  struct Command {
    const char* name;
    const char* usage;
    const char* help;
    Status (Chat::*body)(const std::string& argument);
  };
  static const std::vector<Command>& commands();

  std::optional<std::string> read_line(bool goes_on);
  Status take(const TypedInput& input);
  Status obey(const TypedInput& input);
  Status answer();
  Result<OrderedJson> print_answer();
  // Prints a line that is not an answer.
  void tell(const std::string& line) const;

  Status help(const std::string&);
  Status set_system(const std::string& text);
  Status retry(const std::string&);
  Status clear(const std::string&);
  Status save(const std::string& file);
  Status tell_model(const std::string& name);

  const PromptSpec& spec_;
  ServedModel& model_;
  ChatConversation conversation_;
  LineEditor editor_;
  bool is_history_kept_ = true;
  int num_answers_ = 0;
};

const std::vector<Chat::Command>& Chat::commands() {
  static const std::vector<Command> all = {
      {"help", "/help", "these lines", &Chat::help},
      {"system", "/system [TEXT]", "sets the system message, or shows it; \"\" removes it",
       &Chat::set_system},
      {"retry", "/retry", "answers the latest message again", &Chat::retry},
      {"clear", "/clear", "forgets all but the system message", &Chat::clear},
      {"save", "/save FILE", "writes the conversation as the JSON of a request", &Chat::save},
      {"model", "/model", "says which model answers", &Chat::tell_model}};
  return all;
}

void Chat::tell(const std::string& line) const {
  write_answer(editor_.is_terminal() ? stdout : stderr, line + "\n");
}

Status Chat::help(const std::string&) {
  for (const Command& command : commands())
    tell(fmt::format("{:<16}{}", command.usage, command.help));
  tell("\"\"\" begins a message of several lines, and \"\"\" at a line's end ends it.");
  if (spec_.tools) tell("After a call the next message is its result.");
  tell("Ctrl-C ends an answer, Ctrl-D the conversation.");
  return ok_status();
}

Status Chat::set_system(const std::string& text) {
  if (!text.empty()) conversation_.set_system(text == "\"\"" ? "" : text);
  const std::string& system = conversation_.system();
  tell(system.empty() ? "There is no system message." : "The system message: " + system);
  return ok_status();
}

Status Chat::retry(const std::string&) {
  if (!conversation_.take_back_answer())
    return invalid_argument("[chat] /retry: expected a message before it, got none");
  return answer();
}

Status Chat::clear(const std::string&) {
  conversation_.clear();
  tell("All messages are forgotten.");
  return ok_status();
}

Status Chat::save(const std::string& file) {
  if (file.empty()) return invalid_argument("[chat] /save: expected a file's name, got none");
  const OrderedJson tools = spec_.tools ? parse_ordered_json(*spec_.tools) : nullptr;
  PAGODA_RETURN_IF_ERROR(save_conversation(conversation_, model_.name, tools, file));
  tell(file + " has the conversation.");
  return ok_status();
}

Status Chat::tell_model(const std::string& name) {
  const std::string answers =
      fmt::format("{} on {} answers, with a context of {} tokens.", model_.name, model_.device,
                  model_.engine->limits().max_model_len);
  if (name.empty()) {
    tell(answers);
    return ok_status();
  }
  PAGODA_RETURN_IF_ERROR(resolve_model(name).status());
  tell(answers +
       " It stays to the conversation's end: /save FILE keeps what was said, and `pagoda "
       "chat " +
       name + "` begins anew with the other.");
  return ok_status();
}

Status Chat::obey(const TypedInput& input) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (input.command == command.name) return (this->*command.body)(input.text);
    names.emplace_back(command.name);
  }
  const std::optional<std::string> meant = nearest_name(input.command, names);
  return invalid_argument(
      "[chat] /{}: no such command{}; /help lists all, and \"\"\" around a text sends it",
      input.command, meant ? ", perhaps /" + *meant : "");
}

// Prints the answer as it arrives, and returns it as a message.
Result<OrderedJson> Chat::print_answer() {
  PAGODA_ASSIGN_OR_RETURN(const PromptRequest request,
                          make_chat_request(model_, spec_, conversation_.messages()));
  PAGODA_ASSIGN_OR_RETURN(auto generation, TextGeneration::start(model_, request.text, [] {}));
  if (!editor_.is_terminal() && num_answers_++ > 0) std::printf("\n");
  AnswerReader reader(request.parsing);
  AnswerPrinter printer(stdout, request.parsing);
  std::vector<AnswerPart> whole;
  const auto on_piece = [&](const TextPiece& piece) {
    const std::vector<AnswerPart> parts = reader.parts_of(piece);
    printer.print(parts);
    whole.insert(whole.end(), parts.begin(), parts.end());
    if (interrupted) generation->cancel();
  };
  const Status status = collect(*generation, Clock::system().now(), on_piece).status();
  printer.end();
  PAGODA_RETURN_IF_ERROR(status);
  return message_of(whole);
}

// Answers what was said, which leaves the conversation if there is no answer to it. While calls lack
// results, it asks for the next one instead.
Status Chat::answer() {
  if (!conversation_.next_call()) {
    Result<OrderedJson> message = print_answer();
    if (!message.ok()) {
      conversation_.take_back_texts();
      return message.status();
    }
    conversation_.add_answer(*std::move(message));
  }
  if (const auto call = conversation_.next_call())
    tell(fmt::format("[{} was called: its result is what you say next]", *call));
  return ok_status();
}

Status Chat::take(const TypedInput& input) {
  switch (input.kind) {
    case TypedInput::Kind::kNothing:
      return ok_status();
    case TypedInput::Kind::kCommand:
      return obey(input);
    case TypedInput::Kind::kMessage:
      conversation_.add_text(input.text);
      return answer();
    case TypedInput::Kind::kUnfinished:
      return invalid_argument("[chat] expected a line that ends with \"\"\", got the input's end");
  }
  return ok_status();
}

std::optional<std::string> Chat::read_line(bool goes_on) {
  std::optional<std::string> line = editor_.read(goes_on);
  if (!line || line->empty()) return line;
  const Status kept = editor_.keep(*line);
  if (is_history_kept_ && !kept.ok()) {
    report_error(kept);
    is_history_kept_ = false;  // tells it only once
  }
  return line;
}

Status Chat::run() {
  const bool is_terminal = editor_.is_terminal();
  if (is_terminal) {
    tell(
        fmt::format("{} on {}. /help lists commands; Ctrl-C ends an answer, Ctrl-D the "
                    "conversation.\n",
                    model_.name, model_.device));
  }
  while (true) {
    interrupted = 0;
    const auto input = read_typed_input([this](bool goes_on) { return read_line(goes_on); });
    if (!input) break;
    const bool is_dropped = input->kind == TypedInput::Kind::kUnfinished && interrupted != 0;
    const Status status = is_dropped ? ok_status() : take(*input);
    if (!status.ok() && !is_terminal) return status;
    if (!status.ok()) report_error(status);
    if (is_terminal && input->kind != TypedInput::Kind::kNothing) std::printf("\n");
  }
  if (is_terminal) std::printf("\n");
  return ok_status();
}

Status converse(ChatFlags flags) {
  PAGODA_RETURN_IF_ERROR(read_named_files(flags.answer));
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<ServedModel> model, load(flags.engine));
  listen_for_interruptions();
  return Chat(flags, *model).run();
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
  command.add_option("--tools", flags->answer.tools,
                     "Functions that answers may call, a list of OpenAI's tools or its file; you "
                     "say their results");
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
