// Admission of a request to an engine: its check, and the seed of one that brings none.
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

// Returns the request's own seed, or one mixed of the engine's and the request's number.
std::uint64_t seed_of(const GenerationRequest& request, RequestId id, std::uint64_t engine_seed);

}  // namespace pagoda
