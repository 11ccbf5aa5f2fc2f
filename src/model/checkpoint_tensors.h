// The check that a decoder reads every tensor of a checkpoint. A tensor that it does not read means
// that the checkpoint is of another model than its config says. Such a checkpoint is refused.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Returns whether a name is that of a table that follows from the config, which old converters
// stored too.
bool is_derived_tensor(std::string_view name);

// Checks that no tensor is passed over. kUnsupported names the first tensor that a decoder of that
// config does not read. REQUIRES: the checkpoint has canonical names, and the config an
// architecture of a family.
Status check_all_tensors_are_read(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace pagoda
