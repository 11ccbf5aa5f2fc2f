// The keys of a config.json that say how layers rotate. The same rotation has older and newer
// spellings: rope_theta and rope_scaling at the top, rope_parameters with both in it, and
// rope_parameters with a block for each type of layer. Where a config has several of them,
// transformers' choice is taken.
#pragma once

#include <string>

#include "core/json.h"
#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"

namespace pagoda {

// All that is said of one rotation, whichever place says it.
struct RopeBlock {
  nlohmann::json keys = nlohmann::json::object();
  std::string where;  // for messages: "config.json: rope_scaling"

  JsonFields fields() const { return JsonFields(keys, where); }
};

struct RopeBlocks {
  RopeBlock full;     // of layers that see all
  RopeBlock windows;  // of layers with a window, where these have a rotation of their own
};

// Reads the blocks. Errors: kUnsupported or kInvalidArgument for spellings beside each other of
// which none is known to win; they name the key. Says in the log which keys another one makes idle.
Result<RopeBlocks> read_rope_blocks(const JsonFields& config, const Family& family);

}  // namespace pagoda
