// An engine over a checkpoint on disk whose steps fail when a test says so, and that tells what it
// does between them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/scheduler.h"

namespace pagoda {

// Called on the engine's thread before a part of each step: a failed Status is the step's, and what
// it throws is thrown from within the step.
using Fault = std::function<Status(const Plan& plan)>;

struct Faults {
  Fault of_forward = {};  // empty: none
  Fault of_sample = {};
  bool has_lookahead = false;
  // In StepRunner::prefault()'s place, on the engine's thread.
  std::function<bool(int first_block, bool beside_prompts)> prefault = {};
};

// Opens an engine on the cpu backend. Fails the running test and returns null where it cannot be
// made.
std::unique_ptr<Engine> open_faulty_engine(const std::string& path, const EngineOptions& options,
                                           Faults faults);

}  // namespace pagoda
