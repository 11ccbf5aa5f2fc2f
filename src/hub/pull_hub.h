// Fetches a model into the store from a hub with Hugging Face's API (model_store.h lists the
// store's folders).
//
// A revision is one commit. The list of its files, with their sizes and digests, is read first.
// Every file is then fetched at that commit, so a branch that moves meanwhile cannot mix two
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

// Reads the hub's answer about a revision. The whole answer is refused if one of its files has
// - a path that would leave its folder, or looks like another path;
// - no size, or a negative one;
// - no valid digest.
Result<HubRevision> parse_hub_revision(std::string_view listing);

// Returns the files that an engine reads: config, generation config, tokenizer, chat template and
// weights. The weights are the safetensors. If there are none, they are the only GGUF file, or the
// files of the first format among Q8_0, Q4_1, Q4_0, BF16, F16, F32. Subfolders are left out, and so
// is the second copy of weights that some repositories have (consolidated*.safetensors).
// kUnsupported: there are no such weights, or more than 1024 files.
Result<std::vector<HubFile>> choose_model_files(const std::vector<HubFile>& files);

// Fetches the missing files of a revision and returns the folder that holds it. Only one pull of a
// repository runs at a time: a second one is kUnavailable.
Result<std::filesystem::path> pull_from_hub(const HubName& name, const HubOptions& options);

}  // namespace pagoda
