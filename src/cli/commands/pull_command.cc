// pagoda pull: downloads a model to this machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/flags/model_fetching.h"
#include "core/machine.h"
#include "hub/model_files.h"
#include "hub/pull.h"

namespace pagoda {

namespace {

constexpr double kGigabyte = 1e9;

struct PullFlags {
  std::string name;
  bool lists = false;
};

Status pull(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path path, fetch_model(name));
  std::printf("%s\n", path.c_str());
  return ok_status();
}

// Prints a line of the list.
void print_model(const std::string& name, std::int64_t num_bytes, const char* remark) {
  std::printf("%-56s %8.2f GB%s\n", name.c_str(), static_cast<double>(num_bytes) / kGigabyte,
              remark);
}

// Prints a repository's GGUF models as names that `pull` takes, with their sizes, the best first.
Status list_models(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const PullOptions options, pull_options_from_environment());
  PAGODA_ASSIGN_OR_RETURN(const HubRevision revision, list_hub_files(name, options));
  const std::int64_t memory_bytes = available_memory_bytes();
  const auto remark_on = [&](std::int64_t num_bytes) {
    return fits_memory(num_bytes, memory_bytes) ? "" : "  more than this machine's memory";
  };
  const auto chosen = choose_model_files(revision.files, "", memory_bytes);
  if (chosen.ok() && chosen->quantization.empty())
    print_model(name, chosen->num_bytes, remark_on(chosen->num_bytes));
  for (const HubModel& model : gguf_models(revision.files)) {
    if (model.quantization.empty()) continue;
    print_model(name + ":" + model.quantization, model.num_bytes,
                model.is_read ? remark_on(model.num_bytes) : "  not read");
  }
  return chosen.status();
}

}  // namespace

void add_pull_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App& command = *app.add_subcommand("pull", "Fetch a model");
  command
      .add_option("NAME", flags->name,
                  "smollm2, or hf:ORG/NAME[@REVISION][:QUANTIZATION]; of several quantisations "
                  "the best that fits the memory is fetched")
      ->required();
  command.add_flag("--list", flags->lists, "Print what the repository has, and fetch nothing");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = flags->lists ? list_models(flags->name) : pull(flags->name);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
