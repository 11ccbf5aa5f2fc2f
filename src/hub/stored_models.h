// The models in the store (model_store.h): which there are, and how one leaves it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct StoredModel {
  std::string name;            // as MODEL arguments say it: smollm2, hf:ORG/NAME[@REVISION]
  std::filesystem::path path;  // a file, or a commit's folder
  std::int64_t num_bytes = 0;
  bool is_whole = true;  // false: a pull is under way, or was cut short
};

// Returns the models, by name; none where there is no store. Other files and folders are passed
// over. kDataLoss: a folder cannot be read.
Result<std::vector<StoredModel>> stored_models(const std::filesystem::path& model_dir);

// Removes a model, a pull of it that was cut short, and folders that are empty then; a commit's
// files stay while another revision means them. Returns how many bytes that gave back. kNotFound:
// no such model is there.
Result<std::int64_t> remove_model(std::string_view name, const std::filesystem::path& model_dir);

}  // namespace pagoda
