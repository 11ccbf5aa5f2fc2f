#include "backend/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/machine.h"
#include "core/start_thread.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pagoda::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Work that takes less time than this is claimed in whole parts. Every claim waits for memory loads
// in flight: six claims for a part of 5 microseconds cost a decode step a quarter of its speed.
// Among 2, 3, 5 and 10 microseconds, a decode step's threads wait for each other the least with 5.
constexpr std::chrono::microseconds kUnitTime(5);
// A part of longer work is divided into one unit for each kUnitTime, at most this many. A thread
// claims half of what is left of its own part at a time, and one unit of another thread's part.
constexpr std::int64_t kMostUnits = 16;
// One in this many calls of a kind is timed.
constexpr std::uint32_t kTimedEvery = 16;
// A waiting thread spins for this time before it sleeps. The gaps between a step's ops take a few
// microseconds, the gaps between steps a few hundred. Waking a thread takes 6 to 40 microseconds.
constexpr std::chrono::microseconds kSpinTime(400);
// The spin time while other processes want our cores. A worker that went on spinning would be
// stopped later, in the middle of its work, for a time slice of the scheduler. Then all other
// threads would wait for it.
constexpr std::chrono::microseconds kCrowdedSpinTime(20);
// If the workers are this late, we assume for kCrowdedTime that other processes want our cores.
constexpr std::chrono::milliseconds kLate(1);
constexpr std::chrono::milliseconds kCrowdedTime(500);
// A worker leaves the caller's core at most once in this time. If other processes run on every
// core, the worker may get to run soonest on the caller's.
constexpr std::chrono::milliseconds kLeaveInterval(20);

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns whether `condition` became true within `time`.
template <typename Condition>
bool spin_until(Condition&& condition, Clock::duration time) {
  Clock::time_point end;
  for (int spin = 0;; ++spin) {
    if (condition()) return true;
    relax();
    if (spin % 32 != 31) continue;
    const auto now = Clock::now();
    if (spin == 31) end = now + time;
    if (now >= end) return false;
  }
}

// Prefetches `bytes` into the second-level cache, which has more room than the first, until
// `condition` is true. Returns whether it became true.
template <typename Condition>
bool fetch_until(Condition&& condition, std::span<const std::byte> bytes) {
  constexpr std::size_t kLineBytes = 64, kLinesAtOnce = 4;
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) {
    __builtin_prefetch(bytes.data() + at, 0, 2);
    if (at / kLineBytes % kLinesAtOnce == kLinesAtOnce - 1 && condition()) return true;
  }
  return false;
}

// The part of one thread: grains [begin, end), in units of `unit` grains.
struct Part {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t unit;

  std::uint32_t num_units() const {
    return static_cast<std::uint32_t>((end - begin + unit - 1) / unit);
  }
};

struct Partition {
  std::int64_t num_grains;
  std::int64_t most_units;  // per part
  int num_threads;

  Part part_of(int thread) const {
    const std::int64_t begin = part_begin(num_grains, thread, num_threads);
    const std::int64_t end = part_begin(num_grains, thread + 1, num_threads);
    return {begin, end, std::max<std::int64_t>((end - begin + most_units - 1) / most_units, 1)};
  }
};

}  // namespace

std::uint64_t ThreadPool::pack(const Rest& rest) {
  return std::uint64_t{rest.job} << 32 | rest.begin << 16 | rest.end;
}

ThreadPool::Rest ThreadPool::unpack(std::uint64_t word) {
  return {.job = static_cast<std::uint32_t>(word >> 32),
          .begin = static_cast<std::uint32_t>(word >> 16 & 0xffffu),
          .end = static_cast<std::uint32_t>(word & 0xffffu)};
}

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(std::max(num_threads, 1)),
      lanes_(std::make_unique<Lane[]>(num_threads_)),
      tallies_(std::make_unique<Tally[]>(num_threads_)) {
  threads_.reserve(num_threads_ - 1);
  try {
    for (int thread = 1; thread < num_threads_; ++thread)
      threads_.push_back(start_thread([this, thread] { work_loop(thread); }));
  } catch (...) {
    end_threads();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  end_threads();
}

void ThreadPool::end_threads() {
  stop_.store(true, std::memory_order_release);
  num_wakes_.fetch_add(1, std::memory_order_acq_rel);
  num_wakes_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

ThreadPool::Kind& ThreadPool::kind_of(const Job& job) {
  const auto key = reinterpret_cast<std::uintptr_t>(job.call) ^
                   static_cast<std::uintptr_t>(job.count * 0x9e3779b97f4a7c15);
  auto& set = kinds_[key * 0x9e3779b97f4a7c15 >> 60];
  auto kind = std::find_if(set.begin(), set.end(), [&](const Kind& of) { return of.key == key; });
  if (kind == set.end()) {
    kind = std::min_element(set.begin(), set.end(),
                            [](const Kind& a, const Kind& b) { return a.last_job < b.last_job; });
    *kind = {.key = key};
  }
  kind->last_job = number_ + 1;
  return *kind;
}

void ThreadPool::run(Job job) {
  const Ahead ahead = std::exchange(ahead_, {});
  if (job.count <= 0) return;
  if (num_threads_ == 1 || job.count <= job.grain) {
    job.call(job.body, 0, job.count, 0, true);
    return;
  }
  if (is_crowded_.load(std::memory_order_relaxed) && Clock::now() > crowded_until_) {
    is_crowded_.store(false, std::memory_order_relaxed);
  }
  Kind& kind = kind_of(job);
  job.most_units = std::clamp<std::int64_t>(kind.time / kUnitTime, 1, kMostUnits);
  const std::uint32_t number = ++number_;
  const std::uint32_t num_units = publish(job, number, ahead);
  const bool timed = kind.num_calls++ % kTimedEvery == 0;
  const auto start = timed ? Clock::now() : Clock::time_point();
  const std::uint32_t own = work(number, 0);
  // The time of a job includes the workers' parts. While other processes want the cores, workers
  // may be stopped, so only the caller's own part is timed.
  const bool is_crowded = is_crowded_.load(std::memory_order_relaxed);
  if (timed && is_crowded) kind.time = Clock::now() - start;
  finish(number, num_units - own);
  if (timed && !is_crowded) kind.time = Clock::now() - start;
  if (ahead.time == FetchTime::kOwnPartIsDone) return;
  const int num_parts = std::min(static_cast<int>(ahead.of_threads.size()), num_threads_);
  for (int thread = 1; thread < num_parts; ++thread) lanes_[thread].fetch(ahead.of(thread));
}

std::uint32_t ThreadPool::publish(const Job& job, std::uint32_t number, const Ahead& ahead) {
  const Partition partition = {(job.count + job.grain - 1) / job.grain, job.most_units,
                               num_threads_};
  std::uint32_t total = 0;
  for (int thread = num_threads_ - 1; thread >= 0; --thread) {
    Lane& lane = lanes_[thread];
    lane.count.store(job.count, std::memory_order_relaxed);
    lane.grain.store(job.grain, std::memory_order_relaxed);
    lane.most_units.store(job.most_units, std::memory_order_relaxed);
    lane.body.store(job.body, std::memory_order_relaxed);
    lane.call.store(job.call, std::memory_order_relaxed);
    lane.fetch(ahead.time == FetchTime::kOwnPartIsDone ? ahead.of(thread)
                                                       : std::span<const std::byte>());
    const std::uint32_t num_units = partition.part_of(thread).num_units();
    lane.rest.store(pack({.job = number, .begin = 0, .end = num_units}), std::memory_order_release);
    total += num_units;
  }
  // Caller and worker both modify num_asleep_ atomically and then read what the other has written
  // before that. So either the caller sees the sleeping worker, or the worker sees the job.
  if (num_asleep_.fetch_add(0, std::memory_order_acq_rel) != 0) {
    caller_cpu_.store(current_cpu(), std::memory_order_relaxed);
    num_wakes_.fetch_add(1, std::memory_order_release);
    num_wakes_.notify_all();
  }
  return total;
}

Clock::duration ThreadPool::spin_time() const {
  return is_crowded_.load(std::memory_order_relaxed) ? kCrowdedSpinTime : kSpinTime;
}

// Waits until the workers have done `num_units`.
void ThreadPool::finish(std::uint32_t number, std::uint32_t num_units) {
  const auto finished = [&] { return num_finished(number) == num_units; };
  if (spin_until(finished, spin_time())) return;
  // A worker that is this late has lost its core to another process. The caller sleeps, so that the
  // worker can run on the caller's core.
  const auto start = Clock::now();
  while (true) {
    const std::uint32_t wakes = caller_wakes_.load(std::memory_order_acquire);
    caller_sleeps_.store(true, std::memory_order_relaxed);
    // Caller and worker both modify the tally atomically. So either the caller sees what the worker
    // has finished, or the worker sees that the caller sleeps.
    for (int thread = 1; thread < num_threads_; ++thread) {
      tallies_[thread].finished.fetch_add(0, std::memory_order_acq_rel);
    }
    const bool is_finished = finished();
    if (!is_finished) caller_wakes_.wait(wakes, std::memory_order_acquire);
    caller_sleeps_.store(false, std::memory_order_relaxed);
    if (is_finished) break;
  }
  const auto now = Clock::now();
  if (now - start < kLate) return;
  crowded_until_ = now + kCrowdedTime;
  is_crowded_.store(true, std::memory_order_relaxed);
}

// Does the thread's own part, then units of other threads' parts. Returns the number of units done.
std::uint32_t ThreadPool::work(std::uint32_t number, int thread) {
  std::uint32_t done = 0;
  for (int i = 0; i < num_threads_; ++i) {
    done += work_on(number, (thread + i) % num_threads_, thread, done == 0);
  }
  return done;
}

std::uint32_t ThreadPool::work_on(std::uint32_t number, int owner, int thread, bool is_first) {
  Lane& lane = lanes_[owner];
  std::uint32_t done = 0;
  std::uint64_t word = lane.rest.load(std::memory_order_acquire);
  while (true) {
    const Rest rest = unpack(word);
    if (rest.job != number || rest.begin == rest.end) return done;
    const std::int64_t count = lane.count.load(std::memory_order_relaxed);
    const std::int64_t grain = lane.grain.load(std::memory_order_relaxed);
    const std::int64_t most_units = lane.most_units.load(std::memory_order_relaxed);
    void* const body = lane.body.load(std::memory_order_relaxed);
    const auto call = lane.call.load(std::memory_order_relaxed);
    const std::uint32_t taken = owner == thread ? (rest.end - rest.begin + 1) / 2 : 1;
    Rest left = rest;
    if (owner == thread) {
      left.begin += taken;
    } else {
      left.end -= taken;
    }
    if (!lane.rest.compare_exchange_weak(word, pack(left), std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      continue;
    }
    word = pack(left);
    const Part part =
        Partition{(count + grain - 1) / grain, most_units, num_threads_}.part_of(owner);
    const std::int64_t first = owner == thread ? rest.begin : left.end;
    const std::int64_t begin = part.begin + first * part.unit;
    const std::int64_t end = std::min(begin + taken * part.unit, part.end);
    call(body, begin * grain, std::min(end * grain, count), thread, is_first && done == 0);
    done += taken;
  }
}

// Returns the units of the job that the workers have done.
std::uint32_t ThreadPool::num_finished(std::uint32_t number) const {
  std::uint32_t units = 0;
  for (int thread = 1; thread < num_threads_; ++thread) {
    const std::uint64_t word = tallies_[thread].finished.load(std::memory_order_acquire);
    if (word >> 32 == number) units += static_cast<std::uint32_t>(word);
  }
  return units;
}

void ThreadPool::tell_finished(int thread, std::uint32_t number, std::uint32_t done) {
  tallies_[thread].finished.exchange(std::uint64_t{number} << 32 | done, std::memory_order_acq_rel);
  if (!caller_sleeps_.load(std::memory_order_relaxed)) return;
  caller_wakes_.fetch_add(1, std::memory_order_release);
  caller_wakes_.notify_one();
}

std::uint32_t ThreadPool::sleep_until_job(int thread, std::uint32_t last) {
  num_asleep_.fetch_add(1, std::memory_order_acq_rel);
  std::uint32_t number = last;
  while (number == last && !stop_.load(std::memory_order_acquire)) {
    const std::uint32_t wakes = num_wakes_.load(std::memory_order_acquire);
    number = unpack(lanes_[thread].rest.load(std::memory_order_acquire)).job;
    if (number == last && !stop_.load(std::memory_order_acquire)) {
      num_wakes_.wait(wakes, std::memory_order_acquire);
    }
  }
  num_asleep_.fetch_sub(1, std::memory_order_acq_rel);
  return number;
}

void ThreadPool::work_loop(int thread) {
  const Lane& lane = lanes_[thread];
  const std::byte* fetched = nullptr;  // the bytes prefetched since the last job
  Clock::time_point next_leave;
  std::uint32_t last = 0;
  while (true) {
    std::uint32_t number = last;
    const auto has_job = [&] {
      number = unpack(lane.rest.load(std::memory_order_acquire)).job;
      return number != last;
    };
    const auto has_job_or_fetches = [&] {
      const std::byte* ahead = lane.ahead.load(std::memory_order_acquire);
      if (has_job()) return true;
      if (ahead == fetched) return false;
      fetched = ahead;
      return fetch_until(has_job, {ahead, lane.num_ahead.load(std::memory_order_relaxed)});
    };
    if (!spin_until(has_job_or_fetches, spin_time())) {
      number = sleep_until_job(thread, last);
      if (number == last) return;  // the pool ends
      const int cpu = current_cpu();
      if (cpu == caller_cpu_.load(std::memory_order_relaxed) && Clock::now() > next_leave) {
        leave_cpu(cpu);
        next_leave = Clock::now() + kLeaveInterval;
      }
    }
    last = number;
    const std::uint32_t done = work(number, thread);
    tell_finished(thread, number, done);
    fetched = nullptr;
  }
}

}  // namespace pagoda::cpu
