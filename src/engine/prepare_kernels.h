// The kernels that a model's steps will run, built before the first request.
#pragma once

#include <functional>

#include "core/status.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "tensor/exec.h"

namespace pagoda {

// Calls every op that a step of this model can call, with one row, a few rows and many. From these
// calls the backend lists its kernels and builds them (Exec::prepare_kernels). Nothing is computed,
// and the cache stays as it is. `progress` gets the share that is done, up to 1; it may be empty.
Status prepare_kernels(Exec& exec, const Decoder& decoder, KvStore& kv,
                       const std::function<void(double)>& progress);

}  // namespace pagoda
