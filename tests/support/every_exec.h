// Makes an Exec of each backend that is built and has its device, for tests that compare all
// backends.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "tensor/exec.h"
#include "tensor/read_values.h"

namespace pagoda {

inline std::vector<std::unique_ptr<Exec>> every_exec(int num_threads = 2) {
  std::vector<std::unique_ptr<Exec>> execs;
  for (const Backend backend : {Backend::kReference, Backend::kCpu, Backend::kMlx}) {
    Result<std::unique_ptr<Exec>> exec =
        make_exec({.backend = backend, .num_threads = num_threads});
    if (exec.ok()) {
      execs.push_back(*std::move(exec));
    } else {
      const StatusCode code = exec.status().code();
      EXPECT_TRUE(code == StatusCode::kUnsupported || code == StatusCode::kUnavailable)
          << exec.status().message();
    }
  }
  return execs;
}

// Evaluates a contiguous result and returns its elements.
template <typename T>
std::vector<T> compute_values(Exec& exec, const Tensor& tensor) {
  EXPECT_TRUE(exec.evaluate({&tensor, 1}).ok());
  const std::span<const T> values = read_values<T>(exec, tensor).value();
  return {values.begin(), values.end()};
}

}  // namespace pagoda
