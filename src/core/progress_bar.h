// A progress bar on stderr, shown on a terminal only. The destructor erases it. Not thread-safe.
#pragma once

#include <string>

namespace pagoda {

class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows `share`, in [0, 1]; `note` follows the bar: "12.3 MB/s". Redraws only if the text
  // changed.
  void show(double share, const std::string& note = "");

 private:
  std::string title_;
  std::string last_line_;
  bool on_terminal_;
};

}  // namespace pagoda
