// An engine over a checkpoint on disk whose steps fail when a test says so, and which tells the
// test about its work between steps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/scheduler.h"

namespace pagoda {

// Called on the engine's thread before a part of each step. A failed Status fails the step; an
// exception is thrown from within the step.
using Fault = std::function<Status(const Plan& plan)>;

struct Faults {
  Fault of_forward = {};  // empty: none
  Fault of_sample = {};
  bool has_lookahead = false;
  // Replaces StepRunner::prefault(), on the engine's thread.
  std::function<bool(int first_block, bool beside_prompts)> prefault = {};
};

// Opens an engine on the cpu backend. If that fails, fails the running test and returns null.
std::unique_ptr<Engine> open_faulty_engine(const std::string& path, const EngineOptions& options,
                                           Faults faults);

}  // namespace pagoda
