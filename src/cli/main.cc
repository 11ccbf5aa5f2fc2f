// pagoda: serve, run and measure language models on machines you own.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "cli/command.h"
#include "core/version.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a peer or a pager that goes away is an error to read, not the end
  spdlog::set_default_logger(spdlog::stderr_color_mt("pagoda"));  // stdout is for answers
  CLI::App app(
      "Pagoda serves language models: continuous batching over a paged KV cache, one answer "
      "whatever the company.");
  app.set_version_flag("--version", std::string(pagoda::kVersion));
  app.require_subcommand(1);
  pagoda::CommandBody body;
  pagoda::add_serve_command(app, body);
  pagoda::add_run_command(app, body);
  pagoda::add_chat_command(app, body);
  pagoda::add_bench_command(app, body);
  pagoda::add_perplexity_command(app, body);
  pagoda::add_pull_command(app, body);
  pagoda::add_quantize_command(app, body);
  pagoda::add_info_command(app, body);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "pagoda: %s\n", error.what());
    return pagoda::kExitUsage;
  }
  return body();
}
