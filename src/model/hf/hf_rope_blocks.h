// The keys of a config.json that describe rotations. The same rotation has older and newer
// spellings: rope_theta and rope_scaling at the top level, rope_parameters with both in it, and
// rope_parameters with a block for each type of layer. If a config has several spellings,
// transformers' choice is followed.
#pragma once

#include <string>

#include "core/json.h"
#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"

namespace pagoda {

// The keys of one rotation, collected from all places that may have them.
struct RopeBlock {
  nlohmann::json keys = nlohmann::json::object();
  std::string where;  // for messages: "config.json: rope_scaling"

  JsonFields fields() const { return JsonFields(keys, where); }
};

struct RopeBlocks {
  RopeBlock full;     // of full-attention layers
  RopeBlock windows;  // of layers with a window, if these have a rotation of their own
};

// Reads the blocks, and logs a warning for each key that another key overrides. kUnsupported or
// kInvalidArgument name a key, if it is not known which of several spellings takes precedence.
Result<RopeBlocks> read_rope_blocks(const JsonFields& config, const Family& family);

}  // namespace pagoda
