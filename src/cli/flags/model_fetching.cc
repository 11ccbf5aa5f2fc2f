#include "cli/flags/model_fetching.h"

#include <cstdio>

#include "cli/flags/confirmation.h"
#include "hub/model_store.h"
#include "hub/pull.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr double kGigabyte = 1e9;

void tell(const std::string& name, const PullPlan& plan) {
  std::string line =
      fmt::format("{}: {}{} file{}, {:.2f} GB", name,
                  plan.quantization.empty() ? "" : plan.quantization + ", ", plan.num_files,
                  plan.num_files == 1 ? "" : "s", static_cast<double>(plan.num_bytes) / kGigabyte);
  if (plan.missing_bytes < plan.num_bytes) {
    line += fmt::format(", of which {:.2f} GB are not here",
                        static_cast<double>(plan.missing_bytes) / kGigabyte);
  }
  if (plan.free_bytes >= 0) {
    line += fmt::format("; {:.1f} GB of the disk are free",
                        static_cast<double>(plan.free_bytes) / kGigabyte);
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

bool is_pullable(const std::string& model) {
  return model == DefaultModel::kName || model.starts_with("hf:");
}

bool is_wanted(const std::string& model) {
  return ask_user(model + " is not on this machine. Fetch it?", Confirmation::kYes) ==
         Confirmation::kYes;
}

}  // namespace

Result<fs::path> fetch_model(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(PullOptions options, pull_options_from_environment());
  options.on_plan = [&](const PullPlan& plan) { tell(name, plan); };
  return pull_model(name, options);
}

Result<fs::path> resolve_or_fetch(const std::string& model, Fetching fetching) {
  Result<fs::path> path = resolve_model(model);
  const bool is_missing = !path.ok() && path.status().code() == StatusCode::kNotFound;
  if (!is_missing || !is_pullable(model) || fetching == Fetching::kNever) return path;
  if (fetching == Fetching::kAsk && !is_wanted(model)) return path;
  PAGODA_ASSIGN_OR_RETURN(path, fetch_model(model));
  return resolve_model(model);
}

}  // namespace pagoda
