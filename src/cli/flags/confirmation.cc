#include "cli/flags/confirmation.h"

#include <unistd.h>

#include <cstdio>

namespace pagoda {

Confirmation ask_user(const std::string& question, Confirmation by_default) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return Confirmation::kNobody;
  std::fprintf(stderr, "%s [%s] ", question.c_str(),
               by_default == Confirmation::kYes ? "Y/n" : "y/N");
  char line[16];
  if (std::fgets(line, sizeof line, stdin) == nullptr) {
    std::fprintf(stderr, "\n");
    return Confirmation::kNo;
  }
  if (line[0] == '\n') return by_default;
  return line[0] == 'y' || line[0] == 'Y' ? Confirmation::kYes : Confirmation::kNo;
}

}  // namespace pagoda
