#include "backend/host_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
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

// Returns the number of this process's threads; 0 where the system does not list them.
std::ptrdiff_t num_tasks() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return error ? 0 : std::distance(begin(tasks), end(tasks));
}

TEST(HostThreads, StartsNoneForNothingOrASingleCall) {
  for (const auto& exec : every_exec()) {
    HostThreads threads(*exec);
    const std::ptrdiff_t before = num_tasks();
    int num_calls = 0;
    for (const int count : {0, 1}) {
      threads.parallel_for(count, [&](std::int64_t, int) { ++num_calls; });
      EXPECT_EQ(num_tasks(), before) << backend_name(exec->backend()) << ", " << count;
    }
    EXPECT_EQ(num_calls, 1);
  }
}

}  // namespace
}  // namespace pagoda
