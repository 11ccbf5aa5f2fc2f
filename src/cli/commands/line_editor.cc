#include "cli/commands/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <system_error>

namespace pagoda {
namespace {

constexpr int kMostLines = 1000;
constexpr int kLookAgainMs = 100;  // how often a wait looks for an interruption
constexpr const char* kPrompt = "> ";
constexpr const char* kFurtherPrompt = "... ";
using IsInterrupted = std::function<bool()>;

// Sets a UTF-8 locale: libedit decodes input by the locale, and would split characters into bytes
// under another one.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Waits until standard input can be read; returns false if it was interrupted first.
bool can_read(const IsInterrupted& is_interrupted) {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!is_interrupted()) {
    if (::poll(&input, 1, kLookAgainMs) > 0) return true;
  }
  return false;
}

// Reads a character for libedit, whose own function retries after a signal. Returns 1, 0 at the end
// of the input, or -1. Bytes that are not a valid character are skipped.
int read_character(EditLine* editor, wchar_t* to) {
  const IsInterrupted* is_interrupted = nullptr;
  el_get(editor, EL_CLIENTDATA, &is_interrupted);
  std::mbstate_t state = {};
  while (true) {
    if (!can_read(*is_interrupted)) return -1;
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count <= 0) return static_cast<int>(count);
    const std::size_t used = std::mbrtowc(to, &byte, 1, &state);
    if (used <= 1) return 1;
    if (used == static_cast<std::size_t>(-1)) state = {};
  }
}

std::filesystem::path folder_in(const char* variable, const char* below) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return {};
  return std::filesystem::path(value) / below;
}

}  // namespace

std::filesystem::path default_history_file(const std::string& name) {
  std::filesystem::path folder = folder_in("XDG_STATE_HOME", "pagoda");
  if (folder.empty()) folder = folder_in("HOME", ".local/state/pagoda");
  return folder.empty() ? folder : folder / (name + "_history");
}

class LineEditor::Terminal {
 public:
  // REQUIRES: `is_interrupted` outlives the terminal.
  Terminal(const std::filesystem::path& history_file, const IsInterrupted& is_interrupted)
      : editor_(el_init("pagoda", stdin, stdout, stderr)), history_(history_init()) {
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_CLIENTDATA, &is_interrupted);
    el_wset(editor_, EL_GETCFN, read_character);
    el_set(editor_, EL_HIST, history, history_);
    ask_history(H_SETSIZE, kMostLines);
    ask_history(H_SETUNIQUE, 1);
    if (!history_file.empty()) ask_history(H_LOAD, history_file.c_str());
    el_source(editor_, nullptr);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    history_end(history_);
    el_end(editor_);
  }

  std::optional<std::string> read(bool goes_on) {
    const auto set_prompt = [this](char* (*prompt)(EditLine*)) {
      el_set(editor_, EL_PROMPT, prompt);
    };
    if (goes_on) {
      set_prompt([](EditLine*) { return const_cast<char*>(kFurtherPrompt); });
    } else {
      set_prompt([](EditLine*) { return const_cast<char*>(kPrompt); });
    }
    int count = 0;
    const char* const line = el_gets(editor_, &count);
    if (line == nullptr || count <= 0) return {};
    std::string text(line, static_cast<std::size_t>(count));
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

  void keep(const std::string& line) { ask_history(H_ENTER, line.c_str()); }
  bool save(const std::filesystem::path& file) { return ask_history(H_SAVE, file.c_str()) >= 0; }

 private:
  template <typename Argument>
  int ask_history(int operation, Argument argument) {
    HistEvent event;
    return history(history_, &event, operation, argument);
  }

  EditLine* const editor_;
  History* const history_;
};

LineEditor::LineEditor(std::filesystem::path history_file, IsInterrupted is_interrupted)
    : history_file_(std::move(history_file)), is_interrupted_(std::move(is_interrupted)) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return;
  use_utf8();
  terminal_ = std::make_unique<Terminal>(history_file_, is_interrupted_);
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(bool goes_on) {
  if (terminal_) return terminal_->read(goes_on);
  std::string line;
  if (!std::getline(std::cin, line)) return {};
  return line;
}

Status LineEditor::keep(const std::string& line) {
  if (!terminal_) return ok_status();
  terminal_->keep(line);
  if (history_file_.empty()) return ok_status();
  std::error_code error;
  std::filesystem::create_directories(history_file_.parent_path(), error);
  errno = 0;
  if (terminal_->save(history_file_)) return ok_status();
  return unavailable("[chat] the history is not kept: {}: {}", history_file_.string(),
                     std::strerror(errno));
}

}  // namespace pagoda
