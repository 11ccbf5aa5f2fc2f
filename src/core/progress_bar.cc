#include "core/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pagoda {

namespace {
constexpr int kWidth = 30;  // characters between the brackets
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (on_terminal_ && !last_line_.empty()) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double share, const std::string& note) {
  if (!on_terminal_) return;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  std::string line = fmt::format("{} [{}{}] {:3.0f} % {}", title_, std::string(filled, '#'),
                                 std::string(kWidth - filled, ' '), share * 100, note);
  if (line == last_line_) return;
  last_line_ = std::move(line);
  std::fprintf(stderr, "\r\033[K%s", last_line_.c_str());
  std::fflush(stderr);
}

}  // namespace pagoda
