// parallel_for: the host's own work beside the ops, over the worker threads of backends that have
// some.
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/exec.h"

namespace pagoda {

// Calls body(i, thread) once for each of [0, count), in any order, and returns when all are done.
// `thread` is below exec.num_threads(), and no two calls of one thread run at a time. A single call
// is the caller's. `body` throws nothing and calls no op.
void parallel_for(Exec& exec, std::int64_t count,
                  const std::function<void(std::int64_t i, int thread)>& body);

}  // namespace pagoda
