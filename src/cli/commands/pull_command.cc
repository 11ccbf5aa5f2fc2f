// pagoda pull: downloads a model to this machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "hub/pull.h"

namespace pagoda {

namespace {

Status pull(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const PullOptions options, pull_options_from_environment());
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path path, pull_model(name, options));
  std::printf("%s\n", path.c_str());
  return ok_status();
}

}  // namespace

void add_pull_command(CLI::App& app, CommandBody& body) {
  auto name = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("pull", "Fetch a model");
  command.add_option("NAME", *name, "smollm2, or hf:ORG/NAME[@REVISION]")->required();
  command.callback([name, &body] {
    body = [name] {
      const Status status = pull(*name);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
