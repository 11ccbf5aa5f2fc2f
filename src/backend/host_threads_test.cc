#include "backend/host_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/machine.h"

#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

TEST(HostThreads, CallsEachOnceAndAThreadOnceAtATime) {
  for (const auto& exec : every_exec(/*num_threads=*/3)) {
    HostThreads threads(*exec);
    EXPECT_EQ(threads.num_threads(), exec->backend() == Backend::kCpu ? 3 : default_num_threads());
    for (const int count : {0, 1, 2, 100}) {
      SCOPED_TRACE(testing::Message() << backend_name(exec->backend()) << ", " << count);
      std::vector<std::atomic<int>> num_calls(count);
      std::vector<std::atomic<int>> num_running(threads.num_threads());
      std::atomic<int> num_wrong = 0;
      threads.parallel_for(count, [&](std::int64_t i, int thread) {
        num_wrong += thread < 0 || thread >= threads.num_threads();
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
