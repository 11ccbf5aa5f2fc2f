// Writes a Hugging Face checkpoint as a GGUF file in any format. Independent of `pagoda quantize`,
// which has quantisers for a few formats only.
#pragma once

#include <optional>
#include <string>

#include "model/model_config.h"
#include "tests/support/gguf_writer.h"
#include "weights/checkpoint.h"

namespace pagoda::testing {

struct HfSource {
  Checkpoint checkpoint;
  ModelConfig config;
};

HfSource open_hf_source(const std::string& folder);

// Stores matrices in `format` (F16 if their rows are not whole blocks), all else in F32. Sets the
// keys of the architecture, but none of a tokenizer. `of_values`: the format of value and down
// projections, as Q4_K_M has them in Q6_K.
GgufWriter to_gguf(const HfSource& source, double rope_theta, WeightFormat format,
                   std::optional<WeightFormat> of_values = std::nullopt);

}  // namespace pagoda::testing
