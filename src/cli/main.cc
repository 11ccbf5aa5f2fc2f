// pagoda: serve, run and measure language models on machines you own.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  // A write to a closed pipe or socket must fail with an error and not end the process. So must a
  // write to a file at the limit of its length (ulimit -f).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_mt("pagoda"));  // stdout is for answers
  return pagoda::run_command_line(argc, argv);
}
