// pagoda: serve, run and measure language models on machines you own.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  // A peer or a pager that goes away is an error of a write. So is a file that has reached the
  // limit of its length (ulimit -f). Neither ends the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_mt("pagoda"));  // stdout is for answers
  return pagoda::run_command_line(argc, argv);
}
