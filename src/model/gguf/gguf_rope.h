// The rotations (rope tables) of a GGUF file.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/gguf/gguf_architecture_keys.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The divisor that llama.cpp's converter writes for pairs that do not rotate.
inline constexpr float kNeverRotates = 1e30f;
// Every fourth layer of SmolLM3 does not rotate; files do not say it.
inline constexpr int kUnrotatedInterval = 4;

// Fills rope_tables and each layer's index into it. kUnsupported names a type that nothing here
// computes, kDataLoss a value that is missing or out of range. REQUIRES: the layers and their
// windows have been read; the checkpoint has canonical names.
Status read_gguf_rope(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                      const Family& family, ModelConfig& config);

}  // namespace pagoda
