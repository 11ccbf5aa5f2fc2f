// The layers of a config.json, with their windows.
#pragma once

#include <vector>

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"
#include "model/model_config.h"

namespace pagoda {

// Fills the layers except their rotations. kUnsupported names a type of layer that nothing here
// computes; kInvalidArgument a value that is missing or out of range. REQUIRES: hidden_size has
// been read.
Status read_layers(const JsonFields& fields, const Family& family, ModelConfig& config);

// Returns which layers are rotated, for a family in which some layers are not.
Result<std::vector<bool>> read_rotated_layers(const JsonFields& fields, int num_layers);

}  // namespace pagoda
