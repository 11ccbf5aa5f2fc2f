// The handling of each key of config.json: read, harmless, or refused by name. An unknown key may
// change what a model computes, so it is refused too.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"

namespace pagoda {

// Checks the keys of a text model. kUnsupported names a key that would change the computation, or
// an unknown key.
Status check_config_keys(const JsonFields& config, const Family& family);

// Checks the keys beside a tower's text_config.
Status check_tower_keys(const JsonFields& config);

// Checks the keys of a rope_scaling or rope_parameters block.
Status check_rope_keys(const JsonFields& block, const Family& family);

}  // namespace pagoda
