// MLX's affine groups as config.json describes them, which mlx_lm writes so:
//
//   "quantization": {"group_size": 64, "bits": 4, "mode": "affine",
//                    "model.layers.0.mlp.down_proj": {"group_size": 64, "bits": 6},
//                    "lm_head": false}
//
// The same object may stand under "quantization_config" too or alone; under that name other
// libraries describe formats of their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

struct AffineWidths {
  int bits = 0;
  int group_size = 0;
};

struct AffineConfig {
  AffineWidths widths;  // of modules without a name here
  // By a module's path: a tensor's name without ".weight". Empty: that module is not quantised.
  std::map<std::string, std::optional<AffineWidths>, std::less<>> modules;
};

// Reads it from the whole text of config.json; empty: it says that nothing is quantised.
// kUnsupported: another library's format, a mode that is not "affine", or widths that
// quant/affine.h does not know; kInvalidArgument: a value of the wrong type; kDataLoss: no JSON
// object. Each names the key.
Result<std::optional<AffineConfig>> parse_affine_config(std::string_view config_json);

}  // namespace pagoda
