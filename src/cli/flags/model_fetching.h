// Fetches the model that a MODEL argument names, as `pagoda pull` does.
#pragma once

#include <filesystem>
#include <string>

#include "core/status.h"

namespace pagoda {

// Fetches `smollm2` or `hf:ORG/NAME[@REVISION][:QUANTIZATION]` and returns its path. What is about
// to be fetched, and how much of the disk is free, is told on stderr first. Errors: pull_model()'s.
Result<std::filesystem::path> fetch_model(const std::string& name);

// Whether a command may fetch a model that is not on this machine.
enum class Fetching {
  kNever,
  kAsk,   // on a terminal; never elsewhere
  kDone,  // without asking
};

// Returns the path that MODEL names (resolve_model()). A model of a hub that is not on this machine
// is fetched as `fetching` says. The answer no, and every other case, is resolve_model()'s error.
Result<std::filesystem::path> resolve_or_fetch(const std::string& model, Fetching fetching);

}  // namespace pagoda
