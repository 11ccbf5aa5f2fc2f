#include "backend/parallel_for.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

TEST(ParallelFor, CallsEachOnceAndAThreadOnceAtATime) {
  for (const auto& exec : every_exec(/*num_threads=*/3)) {
    for (const int count : {0, 1, 2, 100}) {
      SCOPED_TRACE(testing::Message() << backend_name(exec->backend()) << ", " << count);
      std::vector<std::atomic<int>> num_calls(count);
      std::array<std::atomic<int>, 3> num_running = {};
      std::atomic<int> num_wrong = 0;
      parallel_for(*exec, count, [&](std::int64_t i, int thread) {
        num_wrong += thread < 0 || thread >= exec->num_threads();
        num_wrong += num_running.at(thread).fetch_add(1) != 0;
        ++num_calls[i];
        --num_running.at(thread);
      });
      EXPECT_EQ(num_wrong, 0);
      for (const std::atomic<int>& calls : num_calls) EXPECT_EQ(calls, 1);
    }
  }
}

}  // namespace
}  // namespace pagoda
