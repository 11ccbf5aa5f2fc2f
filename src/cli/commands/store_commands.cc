// pagoda list and pagoda rm: the models on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/base/amounts.h"
#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/flags/confirmation.h"
#include "cli/flags/flag_values.h"
#include "hub/model_store.h"
#include "hub/stored_models.h"
#include "model/model_config.h"
#include "serving/stored_weights.h"
#include "weights/checkpoint.h"

namespace pagoda {

namespace {

constexpr const char* kUnknown = "-";

// Prints a model's name, family, parameters, the format of most of them, and size.
void print_model(const StoredModel& model, const std::filesystem::path& store) {
  std::string family = kUnknown, parameters = kUnknown, format = kUnknown;
  const Result<std::filesystem::path> path = resolve_model(model.name, store);
  const Result<Checkpoint> checkpoint =
      path.ok() ? Checkpoint::open(path->string()) : Result<Checkpoint>(path.status());
  if (checkpoint.ok()) {
    const StoredWeights weights = read_stored_weights(*checkpoint);
    if (weights.num_parameters > 0) {
      parameters = parameters_text(weights.num_parameters);
      format = weights.format;
    }
    const Result<ModelConfig> config = read_model_config(*checkpoint);
    if (config.ok()) family = config->architecture;
  }
  const char* remark = "";
  if (!model.is_whole) remark = "  not whole; pull it again";
  std::printf("%-48s  %-10s  %8s  %-6s  %10s%s\n", model.name.c_str(), family.c_str(),
              parameters.c_str(), format.c_str(), size_text(model.num_bytes).c_str(), remark);
}

Status list_store(bool only_names) {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path store, default_model_dir());
  const std::vector<StoredModel> models = stored_models(store);
  for (const StoredModel& model : models) {
    if (only_names) {
      std::printf("%s\n", model.name.c_str());
    } else {
      print_model(model, store);
    }
  }
  if (models.empty()) std::fprintf(stderr, "no models yet; pagoda pull smollm2 fetches one\n");
  return ok_status();
}

struct RemoveFlags {
  std::string name;
  bool is_sure = false;
};

// Asks before a model is removed. Names that are not in the store are for remove_model() to refuse.
Status confirm_removal(const std::string& name, const std::filesystem::path& store) {
  for (const StoredModel& model : stored_models(store)) {
    if (model.name != name) continue;
    const std::string question = fmt::format("Remove {}, {}?", name, size_text(model.num_bytes));
    switch (ask_user(question, Confirmation::kNo)) {
      case Confirmation::kYes:
        return ok_status();
      case Confirmation::kNo:
        return cancelled("{}: not removed", name);
      case Confirmation::kNobody:
        return invalid_argument("{}: expected --yes where there is no terminal to ask, got none",
                                name);
    }
  }
  return ok_status();
}

Status remove_from_store(const RemoveFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path store, default_model_dir());
  if (!flags.is_sure) PAGODA_RETURN_IF_ERROR(confirm_removal(flags.name, store));
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t num_bytes, remove_model(flags.name, store));
  std::printf("%s: %s given back\n", flags.name.c_str(), size_text(num_bytes).c_str());
  return ok_status();
}

int exit_code(const Status& status) {
  return status.ok() ? kExitOk : report_error(status);
}

}  // namespace

void add_store_commands(CLI::App& app, CommandBody& body) {
  auto only_names = std::make_shared<bool>(false);
  CLI::App& list = *app.add_subcommand(
      "list", "List the models that have been fetched: name, family, parameters, format, size");
  list.add_flag("--names", *only_names, "Print the names alone, as shells complete them");
  list.callback(
      [only_names, &body] { body = [only_names] { return exit_code(list_store(*only_names)); }; });
  auto flags = std::make_shared<RemoveFlags>();
  CLI::App& rm = *app.add_subcommand("rm", "Remove a model that has been fetched");
  rm.add_option("NAME", flags->name,
                "smollm2, or hf:ORG/NAME[@REVISION][:QUANTIZATION], as pagoda list says it")
      ->type_name(kStoredModelType)
      ->required();
  rm.add_flag("--yes", flags->is_sure, "Remove it without asking");
  rm.callback([flags, &body] { body = [flags] { return exit_code(remove_from_store(*flags)); }; });
}

}  // namespace pagoda
