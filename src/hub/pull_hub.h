// Fetches a model into the store from a hub with Hugging Face's API (model_store.h lists the
// store's folders).
//
// A revision is one commit. The list of its files, with their sizes and digests, is read first.
// Every file is then fetched at that commit, so a branch that moves meanwhile cannot mix two
// versions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/machine.h"
#include "core/status.h"
#include "hub/hub_revision.h"
#include "hub/model_store.h"

namespace pagoda {

// The files that a pull is about to fetch.
struct PullPlan {
  std::string quantization;  // of a GGUF model; "" for safetensors
  std::size_t num_files = 0;
  std::int64_t num_bytes = 0;
  std::int64_t missing_bytes = 0;  // of these, not fetched by an earlier pull
  std::int64_t free_bytes = -1;    // of the disk; -1 if the system does not tell
};

struct HubOptions {
  std::string endpoint;  // no slash at its end
  std::string token;     // empty: none
  std::filesystem::path model_dir;
  std::int64_t memory_bytes = available_memory_bytes();  // what a chosen model must fit into
  // Told once before the first file is fetched, unless everything is here.
  std::function<void(const PullPlan&)> on_plan = {};
  double seconds_between_attempts = 1.0;
};

// Fetches the missing files of a revision (model_files.h says which) and returns the folder that
// holds them, without the repository's own folders. Only one pull of a repository runs at a time: a
// second one is kUnavailable.
Result<std::filesystem::path> pull_from_hub(const HubName& name, const HubOptions& options);

// Reads the list of a revision's files.
Result<HubRevision> read_hub_revision(const HubName& name, const HubOptions& options);

}  // namespace pagoda
