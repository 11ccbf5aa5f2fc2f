// Fetches a model from a hub that speaks Hugging Face's API into the store (model_store.h draws its
// folders).
//
// One revision is one commit. Its list of files, with the size and digest of each, is read first.
// Every file is then fetched at that commit, so that a branch that moves meanwhile cannot mix two
// versions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "hub/model_store.h"
#include "hub/pull_file.h"

namespace pagoda {

struct HubOptions {
  std::string endpoint;  // no slash at its end
  std::string token;     // empty: none
  std::filesystem::path model_dir;
  double seconds_between_attempts = 1.0;
};

struct HubFile {
  std::string path;
  ContentId content;
};

struct HubRevision {
  std::string commit;  // 40 hex digits
  std::vector<HubFile> files;
};

// Reads the hub's answer about a revision. A list with one of these entries is not to be trusted,
// and fails as a whole:
// - a path that would leave its folder, or has characters that are not shown as they stand;
// - a size that is missing or negative;
// - a digest that is not one.
Result<HubRevision> parse_hub_revision(std::string_view listing);

// Returns the files that an engine reads: config, generation config, tokenizer and chat template,
// and the weights: safetensors, or, where there are none, GGUF: the only file, or of several the
// first of the formats Q8_0, Q4_1, Q4_0, BF16, F16, F32. Folders are left out, and so are the
// weights' second copy that some repositories carry (consolidated*.safetensors). kUnsupported: there
// are no such weights, or more than a thousand files.
Result<std::vector<HubFile>> choose_model_files(const std::vector<HubFile>& files);

// Fetches what is missing of the revision and gives the folder that now holds it. Only one pull of
// a repository runs at a time: a second one is kUnavailable.
Result<std::filesystem::path> pull_from_hub(const HubName& name, const HubOptions& options);

}  // namespace pagoda
