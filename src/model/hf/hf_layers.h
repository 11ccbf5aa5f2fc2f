// The layers that a config.json says, their windows too.
#pragma once

#include <vector>

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"
#include "model/model_config.h"

namespace pagoda {

// Fills the layers, all but their rotations. hidden_size has been read. kUnsupported names a type of
// layer that nothing here computes; kInvalidArgument a value that is missing or out of range.
Status read_layers(const JsonFields& fields, const Family& family, ModelConfig& config);

// Returns which layers are rotated, of a family that has some that are not.
Result<std::vector<bool>> read_rotated_layers(const JsonFields& fields, int num_layers);

}  // namespace pagoda
