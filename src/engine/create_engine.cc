#include "engine/create_engine.h"

#include "engine/assemble.h"
#include "engine/threaded_engine.h"

namespace pagoda {

Result<std::unique_ptr<Engine>> create_engine(const Checkpoint& checkpoint,
                                              const ModelConfig& config,
                                              const EngineOptions& options,
                                              const LoadProgress& on_progress) {
  return ThreadedEngine::start([&] { return assemble(checkpoint, config, options, on_progress); });
}

}  // namespace pagoda
