// Admission of a request to an engine: its check, and seeds for requests without one.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/scheduler.h"

namespace pagoda {

// Checks whether a request can be served. kInvalidArgument: an empty or over-long prompt, ids out
// of range, a sampling value out of range, more blocks than the KV cache has. Thread-safe.
Status check_request(const GenerationRequest& request, const EngineLimits& limits,
                     const Scheduler& scheduler);

// Returns an engine's index-th seed for requests without one. It is below 2^53, so every client can
// read it as a JSON number and send it back.
std::uint64_t drawn_seed(std::uint64_t index, std::uint64_t engine_seed);

}  // namespace pagoda
