// The rotations (rope tables) of a config.json.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"
#include "model/model_config.h"

namespace pagoda {

// Fills rope_tables and each layer's index into it. kUnsupported names a type that nothing here
// computes; kInvalidArgument a value that is missing or out of range. REQUIRES: the layers and
// their windows have been read.
Status read_rope(const JsonFields& fields, const Family& family, ModelConfig& config);

}  // namespace pagoda
