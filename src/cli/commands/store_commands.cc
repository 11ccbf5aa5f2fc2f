// pagoda list and pagoda rm: the models on this machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "hub/model_store.h"
#include "hub/stored_models.h"

namespace pagoda {

namespace {

constexpr double kMegabyte = 1e6;

Status list_store() {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path store, default_model_dir());
  const std::vector<StoredModel> models = stored_models(store);
  for (const StoredModel& model : models) {
    std::printf("%-48s %10.1f MB%s\n", model.name.c_str(),
                static_cast<double>(model.num_bytes) / kMegabyte,
                model.is_whole ? "" : "  not whole; pull it again");
  }
  if (models.empty()) std::fprintf(stderr, "no models yet; pagoda pull smollm2 fetches one\n");
  return ok_status();
}

Status remove_from_store(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path store, default_model_dir());
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t num_bytes, remove_model(name, store));
  std::printf("%s: %.1f MB given back\n", name.c_str(), static_cast<double>(num_bytes) / kMegabyte);
  return ok_status();
}

int exit_code(const Status& status) {
  return status.ok() ? kExitOk : report_error(status);
}

}  // namespace

void add_store_commands(CLI::App& app, CommandBody& body) {
  app.add_subcommand("list", "List the models that have been fetched")->callback([&body] {
    body = [] { return exit_code(list_store()); };
  });
  auto name = std::make_shared<std::string>();
  CLI::App& rm = *app.add_subcommand("rm", "Remove a model that has been fetched");
  rm.add_option("NAME", *name,
                "smollm2, or hf:ORG/NAME[@REVISION][:QUANTIZATION], as pagoda list says it")
      ->required();
  rm.callback([name, &body] { body = [name] { return exit_code(remove_from_store(*name)); }; });
}

}  // namespace pagoda
