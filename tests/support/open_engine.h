// An engine over a checkpoint on disk, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/create_engine.h"
#include "tests/support/source_path.h"

namespace pagoda {

// The folder of a checkpoint of three layers, whose golden outputs are beside it.
inline const std::string kTinyLlama = testing::source_path("tests/golden/data/tiny-llama");

// Opens an engine. If that fails, fails the running test and returns null.
std::unique_ptr<Engine> open_engine(const std::string& path, const EngineOptions& options);

// Returns the backends that run here, for parametrised tests.
std::vector<Backend> backends_here();

}  // namespace pagoda
