// The rotations that a config.json says.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"
#include "model/model_config.h"

namespace pagoda {

// Fills rope_tables, and each layer's place among them. The layers and their windows have been read.
// kUnsupported names a type that nothing here computes; kInvalidArgument a value that is missing or
// out of range.
Status read_rope(const JsonFields& fields, const Family& family, ModelConfig& config);

}  // namespace pagoda
