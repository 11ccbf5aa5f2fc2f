// ModelConfig from Hugging Face's config.json and generation_config.json, as transformers reads
// them: up to version 4 (rope_theta and rope_scaling) and from 5 on (rope_parameters). Defaults of
// absent keys are transformers' own.
#pragma once

#include <string_view>

#include "core/status.h"
#include "model/model_config.h"

namespace pagoda {

// Parses a configuration of two whole JSON texts; an empty generation_config means that there is
// none. Errors as in read_model_config.
Result<ModelConfig> parse_hf_config(std::string_view config_json, std::string_view generation_json);

Result<PartialSampling> parse_hf_generation_defaults(std::string_view generation_json);

}  // namespace pagoda
