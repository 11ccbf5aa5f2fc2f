#include "tests/support/open_engine.h"

#include <gtest/gtest.h>

#include "backend/backend.h"

namespace pagoda {

std::unique_ptr<Engine> open_engine(const std::string& path, const EngineOptions& options) {
  Result<Checkpoint> checkpoint = Checkpoint::open(path);
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.status().message();
    return nullptr;
  }
  Result<ModelConfig> config = read_model_config(*checkpoint);
  if (!config.ok()) {
    ADD_FAILURE() << config.status().message();
    return nullptr;
  }
  Result<std::unique_ptr<Engine>> engine = create_engine(*checkpoint, *config, options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status().message();
    return nullptr;
  }
  return *std::move(engine);
}

std::vector<Backend> backends_here() {
  std::vector<Backend> here;
  for (const Backend backend : kBackends) {
    if (backend_is_here(backend)) here.push_back(backend);
  }
  return here;
}

}  // namespace pagoda
