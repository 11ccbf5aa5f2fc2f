// The check that a decoder reads every tensor of a checkpoint. An unread tensor means that the
// checkpoint holds another model than its config says. Such a checkpoint is refused.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Returns whether `name` is a table that can be computed from the config. Old converters stored
// such tables.
bool is_derived_tensor(std::string_view name);

// Checks that the decoder of `config` reads every tensor. kUnsupported names the first tensor that
// it does not read. REQUIRES: the checkpoint has canonical names, and find_family() knows the
// config's architecture.
Status check_all_tensors_are_read(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace pagoda
