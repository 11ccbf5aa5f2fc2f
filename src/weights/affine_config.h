// MLX's affine groups in config.json, in the form that mlx_lm writes:
//
//   "quantization": {"group_size": 64, "bits": 4, "mode": "affine",
//                    "model.layers.0.mlp.down_proj": {"group_size": 64, "bits": 6},
//                    "lm_head": false}
//
// The same object may be under "quantization_config" too, or only there. Other libraries use that
// key for formats of their own.
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
  AffineWidths widths;  // of modules that are not in `modules`
  // By a module's path: a tensor's name without ".weight". nullopt: that module is not quantised.
  std::map<std::string, std::optional<AffineWidths>, std::less<>> modules;
};

// Reads the groups from the whole text of config.json; nullopt: nothing is quantised. kUnsupported:
// another library's format, a mode that is not "affine", or widths that quant/affine.h does not
// know; kInvalidArgument: a value of the wrong type; kDataLoss: no JSON object. Each names the key.
Result<std::optional<AffineConfig>> parse_affine_config(std::string_view config_json);

}  // namespace pagoda
