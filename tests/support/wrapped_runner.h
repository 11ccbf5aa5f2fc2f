// WrappedRunner: a StepRunner around another one, for tests that change a part of what it does.
#pragma once

#include <memory>
#include <utility>

#include "engine/step_runner.h"

namespace pagoda {

class WrappedRunner : public StepRunner {
 public:
  explicit WrappedRunner(std::unique_ptr<StepRunner> runner) : runner_(std::move(runner)) {}

  Status forward(const Plan& plan) override { return runner_->forward(plan); }
  Status draw(const Plan& plan) override { return runner_->draw(plan); }
  bool draws_ahead() const override { return runner_->draws_ahead(); }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override {
    return runner_->sample(plan, wants_logits);
  }
  void abandon() override { runner_->abandon(); }
  bool prefault(int first_block, bool beside_prompts) override {
    return runner_->prefault(first_block, beside_prompts);
  }
  bool has_lookahead() const override { return runner_->has_lookahead(); }
  RunnerStats stats() const override { return runner_->stats(); }

 private:
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace pagoda
