// A Hugging Face checkpoint as a GGUF file in any format, written apart from `pagoda quantize`,
// which has quantisers for a few.
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

// Matrices in `format` (F16 where their rows are no whole blocks), all else in F32. The keys of the
// architecture are set, none of a tokenizer. `of_values`: the format of values' and down projections
// alone, as Q4_K_M has them in Q6_K.
GgufWriter to_gguf(const HfSource& source, double rope_theta, WeightFormat format,
                   std::optional<WeightFormat> of_values = std::nullopt);

}  // namespace pagoda::testing
