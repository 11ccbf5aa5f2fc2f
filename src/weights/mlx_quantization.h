// MLX's affine groups and MXFP4 in config.json, in the form that mlx_lm writes:
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

struct MlxWidths {
  int bits = 0;
  int group_size = 0;
  bool is_mxfp4 = false;  // else affine groups
};

struct MlxQuantization {
  MlxWidths widths;  // of modules that are not in `modules`
  // By a module's path: a tensor's name without ".weight". nullopt: that module is not quantised.
  std::map<std::string, std::optional<MlxWidths>, std::less<>> modules;

  bool is_mxfp4(std::string_view module) const;
};

// Reads the groups from the whole text of config.json; nullopt: nothing is quantised, or experts are
// as gpt-oss has them (weights/mxfp4_tensor.h). kUnsupported: another library's format, a mode that is
// neither "affine" nor "mxfp4", or widths that the mode does not have; kInvalidArgument: a value of
// the wrong type; kDataLoss: no JSON object. Each names the key.
Result<std::optional<MlxQuantization>> parse_mlx_quantization(std::string_view config_json);

}  // namespace pagoda
