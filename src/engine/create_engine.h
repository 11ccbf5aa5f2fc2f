// create_engine: a checkpoint behind a running engine.
#pragma once

#include <memory>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Starts the engine's thread, which assembles the engine's parts (engine/assemble.h says what that
// fills in, and its errors), and returns when it is ready.
Result<std::unique_ptr<Engine>> create_engine(const Checkpoint& checkpoint,
                                              const ModelConfig& config,
                                              const EngineOptions& options,
                                              const LoadProgress& on_progress = {});

}  // namespace pagoda
