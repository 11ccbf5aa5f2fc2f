#include "cli/base/standard_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include "cli/base/command.h"

namespace pagoda {
namespace {

// Returns whether stdout is a pipe whose reader has ended.
bool has_lost_reader() {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// Ends the process by SIGPIPE, which main() ignores so that writes to sockets fail instead.
[[noreturn]] void end_by_closed_pipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  std::signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::raise(SIGPIPE);
  std::abort();
}

}  // namespace

// Escapes U+0000 to U+001F, U+007F, and U+0080 to U+009F, which are C2 80 to C2 9F in UTF-8.
std::string without_controls(std::string_view utf8) {
  std::string shown;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    unsigned code = static_cast<unsigned char>(utf8[i]);
    const auto next = static_cast<unsigned char>(i + 1 < utf8.size() ? utf8[i + 1] : 0);
    if (code == 0xc2 && 0x80 <= next && next < 0xa0) {
      code = next;
      ++i;
    } else if (code == '\n' || code == '\t' || (code >= 0x20 && code != 0x7f)) {
      shown += utf8[i];
      continue;
    }
    shown += fmt::format("\\u{:04x}", code);
  }
  return shown;
}

void write_answer(std::FILE* out, std::string_view utf8) {
  const std::string shown = isatty(fileno(out)) != 0 ? without_controls(utf8) : std::string(utf8);
  std::fwrite(shown.data(), 1, shown.size(), out);
  std::fflush(out);
  if (out == stdout && std::ferror(out) != 0 && has_lost_reader()) end_by_closed_pipe();
}

int close_standard_output(int code) {
  std::cout.flush();
  const bool was_written = std::cout.good() && std::ferror(stdout) == 0;
  errno = 0;
  if ((std::fflush(stdout) == 0 && was_written) || code != kExitOk) return code;
  if (has_lost_reader()) end_by_closed_pipe();
  const std::string why =
      errno == 0 ? "" : fmt::format(": {}", std::generic_category().message(errno));
  std::fprintf(stderr, "pagoda: standard output could not be written%s\n", why.c_str());
  return kExitFailure;
}

}  // namespace pagoda
