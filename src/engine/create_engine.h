// create_engine: a checkpoint behind a running engine.
#pragma once

#include <functional>
#include <memory>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Called with the share of the weights loaded, in (0, 1], on the engine's thread.
using LoadProgress = std::function<void(double)>;

// Starts the engine's thread, which makes the Exec, loads the weights and sizes the KV cache there
// (MLX's streams belong to a thread), and returns when it is ready. Options left at 0 are filled
// in; where memory is short max_model_len shrinks, with one line in the log that says so. Errors:
// the checkpoint's and the backend's, and kResourceExhausted where not even one sequence of a block
// fits.
Result<std::unique_ptr<Engine>> create_engine(const Checkpoint& checkpoint,
                                              const ModelConfig& config,
                                              const EngineOptions& options,
                                              const LoadProgress& on_progress = {});

}  // namespace pagoda
