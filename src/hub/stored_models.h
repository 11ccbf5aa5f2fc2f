// Lists the models in the store (model_store.h), and removes one of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct StoredModel {
  std::string name;  // as in MODEL arguments: smollm2, hf:ORG/NAME[@REVISION][:QUANTIZATION]
  std::filesystem::path path;  // a file, or a commit's folder
  std::int64_t num_bytes = 0;
  bool is_whole = true;  // false: a pull is under way, or was cut short
};

// Returns the models, by name; none if there is no store. Other files and folders, and folders that
// cannot be read, are ignored.
std::vector<StoredModel> stored_models(const std::filesystem::path& model_dir);

// Removes a model, or an unfinished pull of it, and the folders that are empty then. A commit's
// files stay while another revision names them. Returns how many bytes were freed. kNotFound: there
// is no such model. kUnavailable: a pull is writing its repository.
Result<std::int64_t> remove_model(std::string_view name, const std::filesystem::path& model_dir);

}  // namespace pagoda
