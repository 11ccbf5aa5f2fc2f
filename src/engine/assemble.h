// assemble: makes the parts of an engine from a checkpoint and options. No other code does it.
#pragma once

#include <functional>
#include <memory>

#include "core/status.h"
#include "engine/engine_core.h"
#include "engine/engine_options.h"
#include "engine/model_runner.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The parts that a runner is made of. `exec` outlives the runner.
struct RunnerParts {
  Exec* exec = nullptr;
  Decoder decoder;
  KvStore kv;
  StepSamplerOptions options;
  bool host_reads_blocks = false;  // see ModelRunner
};
using RunnerFactory = std::function<std::unique_ptr<StepRunner>(RunnerParts)>;

std::unique_ptr<StepRunner> make_model_runner(RunnerParts parts);

// Makes the Exec, loads the weights and sizes the KV cache, on the thread that will run the steps.
// Options left at 0 get their defaults. If memory is short, max_model_len is lowered and a warning
// is logged. Errors: those of the checkpoint and the backend, and kResourceExhausted if not even
// one sequence of one block fits.
Result<EngineParts> assemble(const Checkpoint& checkpoint, const ModelConfig& config,
                             const EngineOptions& options, const LoadProgress& on_progress = {},
                             const RunnerFactory& make_runner = make_model_runner);

}  // namespace pagoda
