#include "cli/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/base/report_error.h"
#include "cli/base/standard_output.h"
#include "cli/flags/flag_sources.h"
#include "cli/flags/usage_error.h"
#include "core/log.h"
#include "core/version.h"

namespace pagoda {

namespace {

// Makes a flag take one value each time it is given. Positionals may be lists, like the URLs of
// `ps`.
void take_single_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) option->allow_extra_args(false);
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) take_single_values(*command);
}

int complain(const std::string& what) {
  std::fprintf(stderr, "pagoda: %s\n", what.c_str());
  return kExitUsage;
}

// Runs a command. If memory or threads are lacking, it ends with one line, like any other error.
int run(const CommandBody& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report_error(resource_exhausted("expected more memory than the system has left"));
  } catch (const std::exception& error) {
    return report_error(internal_error("{}", error.what()));
  }
}

}  // namespace

void add_commands(CLI::App& app, CommandBody& body) {
  app.require_subcommand(1);
  add_serve_command(app, body);
  add_run_command(app, body);
  add_chat_command(app, body);
  add_bench_command(app, body);
  add_perplexity_command(app, body);
  add_pull_command(app, body);
  add_store_commands(app, body);
  add_ps_command(app, body);
  add_quantize_command(app, body);
  add_info_command(app, body);
  add_completions_commands(app, body);
  take_single_values(app);
}

int run_command_line(int argc, const char* const* argv) {
  CLI::App app(
      "Pagoda serves language models: continuous batching over a paged KV cache, one answer "
      "whatever the batch.",
      "pagoda");
  app.set_version_flag("--version", version_and_commit());
  CommandBody body;
  add_commands(app, body);
  if (argc <= 1) {
    std::printf("%s", app.help().c_str());
    return close_standard_output(kExitOk);
  }
  const auto arguments = with_other_sources(
      app, {argv + 1, argv + argc},
      [](const std::string& name) -> const char* { return std::getenv(name.c_str()); });
  if (!arguments.ok()) return complain(arguments.status().message());
  std::vector<const char*> expanded = {argv[0]};
  for (const std::string& argument : *arguments) expanded.push_back(argument.c_str());
  const int count = static_cast<int>(expanded.size());
  if (const auto error = empty_value_error(app, count, expanded.data())) return complain(*error);
  try {
    app.parse(count, expanded.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return close_standard_output(app.exit(error));  // --help, --version
    return complain(usage_error(app, error));
  }
  if (const auto error = bytes_error(app)) return complain(*error);
  for (const std::string& line : mistyped_variables(app, environ)) log_warning("{}", line);
  return close_standard_output(run(body));
}

}  // namespace pagoda
