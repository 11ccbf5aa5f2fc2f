// create_engine: makes a running engine from a checkpoint.
#pragma once

#include <memory>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Starts the engine's thread, which assembles the engine's parts, and returns when it is ready.
// engine/assemble.h tells which options get defaults, and the errors.
Result<std::unique_ptr<Engine>> create_engine(const Checkpoint& checkpoint,
                                              const ModelConfig& config,
                                              const EngineOptions& options,
                                              const LoadProgress& on_progress = {});

}  // namespace pagoda
