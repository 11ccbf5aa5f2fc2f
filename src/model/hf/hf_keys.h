// The fate of each key of config.json: it is read, harmless, or refused by name. An unknown key may
// change what a model computes, so it is refused too.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"

namespace pagoda {

// Checks the keys of a text model. kUnsupported names one that would change what the model computes,
// or an unknown one.
Status check_config_keys(const JsonFields& config, const Family& family);

// Checks the keys beside a tower's text_config.
Status check_tower_keys(const JsonFields& config);

// Checks the keys of rope_scaling and rope_parameters, whichever is in force.
Status check_rope_keys(const JsonFields& block, const Family& family);

}  // namespace pagoda
