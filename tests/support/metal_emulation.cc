#include "tests/support/metal_emulation.h"

#include <ucontext.h>

#include <array>
#include <memory>
#include <vector>

#include "core/check.h"

namespace pagoda::metal_emulation {
namespace {

constexpr int kLanes = 32;
constexpr std::size_t kStackBytes = 128 * 1024;

enum class Stop { kSimd, kThreadgroup, kEnd };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  Thread thread;
  Stop stop = Stop::kEnd;
  int num_exchanges = 0;
};

struct SimdGroup {
  // By the exchange's parity: a lane may be one exchange ahead of others that read the last one.
  float values[2][kLanes];
};

// A threadgroup that runs.
class Threadgroup {
 public:
  Threadgroup(int num_threads, const std::function<void(const Thread&)>& body)
      : body_(body), fibers_(num_threads), groups_(num_threads / kLanes) {
    for (Fiber& fiber : fibers_) fiber.stack = std::make_unique<char[]>(kStackBytes);
  }

  void run(const Uint3& position);
  const float* exchange(float value);
  void stop(Stop reason) {
    current_->stop = reason;
    swapcontext(&current_->context, &scheduler_);
  }

 private:
  static void enter();
  void start(int index, const Uint3& position);
  Stop resume(int group);

  const std::function<void(const Thread&)>& body_;
  std::vector<Fiber> fibers_;
  std::vector<SimdGroup> groups_;
  ucontext_t scheduler_;
  Fiber* current_ = nullptr;
};

thread_local Threadgroup* running = nullptr;  // fibers take no arguments

void Threadgroup::enter() {
  running->body_(running->current_->thread);
  running->stop(Stop::kEnd);
}

void Threadgroup::start(int index, const Uint3& position) {
  Fiber& fiber = fibers_[index];
  const auto i = static_cast<unsigned>(index);
  fiber.thread = {position, i, i % kLanes, i / kLanes};
  fiber.num_exchanges = 0;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &Threadgroup::enter, 0);
}

// Runs each lane of a SIMD group up to where it stops, which must be the same place.
Stop Threadgroup::resume(int group) {
  Fiber& first = fibers_[group * kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    current_ = &fibers_[group * kLanes + lane];
    swapcontext(&scheduler_, &current_->context);
    PAGODA_CHECK(current_->stop == first.stop && current_->num_exchanges == first.num_exchanges,
                 "[metal] lanes of a SIMD group part ways");
  }
  return first.stop;
}

void Threadgroup::run(const Uint3& position) {
  running = this;
  for (int i = 0; i < static_cast<int>(fibers_.size()); ++i) start(i, position);
  const auto num_groups = static_cast<int>(groups_.size());
  std::vector<bool> has_ended(num_groups);
  for (int num_ended = 0; num_ended < num_groups;) {
    int num_waiting = 0;
    for (int group = 0; group < num_groups; ++group) {
      if (has_ended[group]) continue;
      Stop stop = Stop::kSimd;
      while (stop == Stop::kSimd) stop = resume(group);
      has_ended[group] = stop == Stop::kEnd;
      num_ended += has_ended[group] ? 1 : 0;
      num_waiting += stop == Stop::kThreadgroup ? 1 : 0;
    }
    PAGODA_CHECK(num_waiting == 0 || num_waiting == num_groups,
                 "[metal] a barrier that not all of a threadgroup reach");
  }
  running = nullptr;
}

// Returns what the lanes of the calling thread's SIMD group hand in at this point, good until the
// thread's next exchange but one.
const float* Threadgroup::exchange(float value) {
  Fiber& fiber = *current_;
  float* const values =
      groups_[fiber.thread.simdgroup_index_in_threadgroup].values[fiber.num_exchanges++ % 2];
  values[fiber.thread.thread_index_in_simdgroup] = value;
  stop(Stop::kSimd);
  return values;
}

// Neighbours first, then pairs of them.
template <typename Join>
float reduce(float value, Join&& join) {
  std::array<float, kLanes> values;
  std::copy_n(running->exchange(value), kLanes, values.begin());
  for (int distance = 1; distance < kLanes; distance *= 2) {
    for (int lane = 0; lane < kLanes; lane += 2 * distance)
      values[lane] = join(values[lane], values[lane + distance]);
  }
  return values[0];
}

}  // namespace

void run_grid(const Grid& grid, const std::function<void(const Thread&)>& body) {
  Threadgroup threadgroup(grid.num_threads, body);
  for (int y = 0; y < grid.num_groups_y; ++y) {
    for (int x = 0; x < grid.num_groups_x; ++x)
      threadgroup.run({static_cast<unsigned>(x), static_cast<unsigned>(y), 0});
  }
}

float simd_sum(float value) {
  return reduce(value, [](float a, float b) { return a + b; });
}
float simd_max(float value) {
  return reduce(value, [](float a, float b) { return std::max(a, b); });
}
void simdgroup_barrier() {
  running->exchange(0);
}
void threadgroup_barrier() {
  running->stop(Stop::kThreadgroup);
}

}  // namespace pagoda::metal_emulation
