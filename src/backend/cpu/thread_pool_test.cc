#include "backend/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/cpu_time.h"
#include "tests/support/eventually.h"

namespace pagoda::cpu {
namespace {

struct Span {
  std::int64_t count;
  std::int64_t grain;
};

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int num_threads : {1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    for (const Span span : {Span{0, 1}, Span{1, 1}, Span{2, 1}, Span{7, 3}, Span{64, 16},
                            Span{1000, 1}, Span{1001, 12}}) {
      std::vector<std::atomic<int>> visits(span.count);
      pool.parallel_for(span.count, span.grain, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const std::atomic<int>& count : visits) {
        EXPECT_EQ(count.load(), 1) << num_threads << " threads, " << span.count;
      }
    }
  }
}

TEST(ThreadPool, AThreadStartsOnceBeforeItsFirstRange) {
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::int64_t> first(num_threads, -1), ranges(num_threads, 0);
      const auto start = [&](std::int64_t begin, int thread) {
        EXPECT_EQ(first[thread], -1) << "thread " << thread << " started twice";
        first[thread] = begin;
      };
      const auto body = [&](std::int64_t begin, std::int64_t, int thread) {
        if (ranges[thread]++ == 0) {
          EXPECT_EQ(first[thread], begin) << "thread " << thread;
        }
        if (round < 50) std::this_thread::sleep_for(std::chrono::microseconds(10));
      };
      pool.parallel_for(40, 2, start, body);
      for (int thread = 0; thread < num_threads; ++thread) {
        EXPECT_EQ(first[thread] >= 0, ranges[thread] > 0) << "thread " << thread;
      }
    }
  }
}

// Long work is divided more finely once the pool knows its time.
TEST(ThreadPool, CoversEveryIndexOfLongWorkOnce) {
  for (const int num_threads : {2, 3, 5}) {
    ThreadPool pool(num_threads);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::atomic<int>> visits(97);
      pool.parallel_for(97, 3, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[i];
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      });
      for (const std::atomic<int>& count : visits) {
        ASSERT_EQ(count.load(), 1) << num_threads << " threads, round " << round;
      }
    }
  }
}

// A step alternates a dozen kinds of work. The pool must remember the time of each kind.
TEST(ThreadPool, LongWorkOfManyKindsIsDivided) {
  constexpr int kKinds = 40, kLeastCount = 32;
  ThreadPool pool(2);
  std::vector<int> num_ranges(kKinds);
  for (int round = 0; round < 2; ++round) {
    for (int kind = 0; kind < kKinds; ++kind) {
      std::atomic<int> ranges = 0;
      pool.parallel_for(kLeastCount + kind, 1, [&](std::int64_t begin, std::int64_t end, int) {
        ++ranges;
        std::this_thread::sleep_for((end - begin) * std::chrono::microseconds(10));
      });
      num_ranges[kind] = ranges;
    }
  }
  for (int kind = 0; kind < kKinds; ++kind) EXPECT_GT(num_ranges[kind], 2) << kind;
}

TEST(ThreadPool, AThreadGoesThroughItsPartInAscendingOrder) {
  constexpr std::int64_t kCount = 300;
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> last(3, -1);
    std::atomic<int> num_broken{0};
    pool.parallel_for(kCount, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      const bool is_own = begin >= kCount / 3 * thread && end <= kCount / 3 * (thread + 1);
      if (is_own && begin <= last[thread]) ++num_broken;
      if (is_own) last[thread] = begin;
    });
    ASSERT_EQ(num_broken.load(), 0);
  }
}

// A late thread delays only what it has claimed, at most half of its part.
TEST(ThreadPool, OthersTakeWhatALateThreadHasNotClaimed) {
  constexpr std::int64_t kCount = 64;
  ThreadPool pool(2);
  std::atomic<std::int64_t> num_done{0};
  bool is_held_up = false;
  bool were_others_done = true;
  const auto body = [&](std::int64_t begin, std::int64_t end, int) {
    if (is_held_up && begin == kCount / 2) {
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
      while (num_done.load() < kCount - kCount / 4) {
        if (std::chrono::steady_clock::now() > give_up) {
          were_others_done = false;
          break;
        }
        std::this_thread::yield();
      }
    }
    for (std::int64_t i = begin; i < end; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      ++num_done;
    }
  };
  pool.parallel_for(kCount, 1, body);  // the pool learns the time of this work
  for (int round = 0; round < 5; ++round) {
    num_done = 0;
    is_held_up = true;
    pool.parallel_for(kCount, 1, body);
    EXPECT_TRUE(were_others_done);
    EXPECT_EQ(num_done.load(), kCount);
  }
}

TEST(ThreadPool, RangesAreWholeGrains) {
  ThreadPool pool(3);
  std::atomic<int> num_broken{0};
  for (int round = 0; round < 20; ++round) {
    pool.parallel_for(1003, 12, [&](std::int64_t begin, std::int64_t end, int) {
      if (begin % 12 != 0 || (end % 12 != 0 && end != 1003)) ++num_broken;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
  }
  EXPECT_EQ(num_broken.load(), 0);
}

TEST(ThreadPool, OneGrainStaysOnTheCaller) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i) {
    pool.parallel_for(16, 16, [&](std::int64_t begin, std::int64_t end, int thread) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(thread, 0);
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 16);
    });
  }
}

TEST(ThreadPool, AThreadIndexIsUsedByOneThreadAtATime) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> num_shared{0};
  for (int round = 0; round < 200; ++round) {
    pool.parallel_for(64, 1, [&](std::int64_t, std::int64_t, int thread) {
      if (inside[thread].fetch_add(1) != 0) ++num_shared;
      inside[thread].fetch_sub(1);
    });
  }
  EXPECT_EQ(num_shared.load(), 0);
}

TEST(ThreadPool, WritesBeforeAndInsideAreSeenAfter) {
  ThreadPool pool(3);
  std::vector<std::int64_t> values(500, 0);  // plain memory: the pool alone orders the accesses
  for (std::int64_t round = 1; round <= 2000; ++round) {
    pool.parallel_for(500, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) values[i] += round;
    });
    ASSERT_EQ(values[round % 500], round * (round + 1) / 2);
  }
}

TEST(ThreadPool, IdleWorkersUseNoCpu) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](std::int64_t, std::int64_t, int) {});
  const double start = process_cpu_seconds();
  // Workers stop spinning after little CPU time, but on a busy machine that may take long.
  EXPECT_TRUE(eventually([] {
    const double before = process_cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return process_cpu_seconds() - before < 0.03;
  }));
  EXPECT_LT(process_cpu_seconds() - start, 0.1);
}

// Workers may be told to prefetch memory that the process may not read, because they do not read
// it.
TEST(ThreadPool, WorkIsDoneWhateverWorkersFetchMeanwhile) {
  ThreadPool pool(3);
  const std::vector<std::byte> memory(1 << 20);
  const auto* const nowhere = reinterpret_cast<const std::byte*>(std::uintptr_t{64});
  const std::span<const std::byte> of_threads[] = {{}, memory, {nowhere, std::size_t{1} << 16}};
  for (int round = 0; round < 2000; ++round) {
    std::atomic<std::int64_t> sum{0};
    pool.fetch_behind_next(std::span(of_threads).first(round % 4),
                           round % 8 < 4 ? FetchTime::kOwnPartIsDone : FetchTime::kAllAreDone);
    pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) sum += i;
    });
    ASSERT_EQ(sum.load(), 4950);
  }
}

TEST(ThreadPool, WorkAfterSleepIsDone) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // workers are asleep
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum.load(), 4950);
  }
}

}  // namespace
}  // namespace pagoda::cpu
