#include "tests/support/faulty_engine.h"

#include <gtest/gtest.h>

#include "engine/assemble.h"
#include "engine/threaded_engine.h"
#include "tests/support/wrapped_runner.h"

namespace pagoda {
namespace {

class FaultyRunner final : public WrappedRunner {
 public:
  FaultyRunner(std::unique_ptr<StepRunner> runner, Faults faults)
      : WrappedRunner(std::move(runner)), faults_(std::move(faults)) {}

  Status forward(const Plan& plan) override {
    if (faults_.of_forward) PAGODA_RETURN_IF_ERROR(faults_.of_forward(plan));
    return WrappedRunner::forward(plan);
  }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override {
    if (faults_.of_sample) PAGODA_RETURN_IF_ERROR(faults_.of_sample(plan));
    return WrappedRunner::sample(plan, wants_logits);
  }
  bool prefault(int first_block, bool beside_prompts) override {
    return faults_.prefault ? faults_.prefault(first_block, beside_prompts)
                            : WrappedRunner::prefault(first_block, beside_prompts);
  }

 private:
  Faults faults_;
};

Result<EngineParts> assemble_faulty(const std::string& path, EngineOptions options,
                                    const Faults& faults) {
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path));
  PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(checkpoint));
  options.backend = Backend::kCpu;
  return assemble(checkpoint, config, options, {}, [&](RunnerParts parts) {
    parts.options.has_lookahead = faults.has_lookahead;
    return std::make_unique<FaultyRunner>(make_model_runner(std::move(parts)), faults);
  });
}

}  // namespace

std::unique_ptr<Engine> open_faulty_engine(const std::string& path, const EngineOptions& options,
                                           Faults faults) {
  Result<std::unique_ptr<Engine>> engine =
      ThreadedEngine::start([&] { return assemble_faulty(path, options, faults); });
  if (engine.ok()) return *std::move(engine);
  ADD_FAILURE() << engine.status().message();
  return nullptr;
}

}  // namespace pagoda
