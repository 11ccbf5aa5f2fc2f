// Machine: runs one threadgroup at a time, with fibers as its threads.
//
// A SIMD group's lanes run one after another, in an order that changes, up to a call of lane.h that
// they make together; the code up to that call is a segment. The last lane to arrive computes the
// call for all lanes, and the next segment begins. At a threadgroup's barrier another SIMD group
// continues. Fibers switch directly to each other, and are reused by later threadgroups and
// dispatches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/metal/emulator/emulator.h"
#include "tests/metal/emulator/lane.h"
#include "tests/metal/emulator/tracer.h"

namespace pagoda::emulator {

inline constexpr int kLanes = 32;
inline constexpr int kMaxThreads = 1024;
inline constexpr std::size_t kMaxThreadgroupBytes = 32768;
inline constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

#ifndef __x86_64__
#error "fibers and the flush of denormals are written for x86-64"
#endif

// Continues on the stack `to`, and stores this stack's top in `from`. The compiler saves the
// registers that it needs in the frame that it has anyway. Fibers mostly wait at the same place, so
// that the processor predicts the jump. It also predicts later returns, because this is not a call
// (Boost.Context makes a call and costs five times as much).
inline void switch_stack(void** from, void* to) {
  asm volatile(
      R"(
        leaq -128(%%rsp), %%rsp
        pushq %%rbp
        leaq 1f(%%rip), %%rax
        pushq %%rax
        movq %%rsp, (%%rdi)
        movq %%rsi, %%rsp
        popq %%rax
        jmpq *%%rax
      1:
        popq %%rbp
        leaq 128(%%rsp), %%rsp
      )"  // a function may use 128 bytes below its stack's top
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

// A fast generator of random numbers, of moderate quality: xorshift64*.
class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545f4914f6cdd1du) >> 32);
  }
  void shuffle(std::vector<std::uint32_t>& values);

 private:
  std::uint64_t state_;
};

struct Lane {
  void* stack_top = nullptr;   // where the fiber continues
  std::byte* stack = nullptr;  // the stack's lowest byte
  std::uint32_t thread = 0;
  Collective kind = Collective::kEnd;  // the last call's kind, and below its flags and place
  std::uint8_t flags = 0;
  const void* place = nullptr;
  std::uint64_t trail = 0;  // a hash of calls that lanes make together without waiting
};

struct SimdGroup {
  std::uint32_t index = 0;
  std::uint32_t stride = 1;  // from a lane to the next in this segment's order, odd
  std::uint32_t first = 0;
  std::uint32_t parity = 0;  // alternates: a shuffle's values stay until the next shuffle ends
  std::array<std::array<std::uint32_t, kLanes>, 2> values;
  std::array<MatrixPart, kLanes> a, b, c;
};

class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Returns the calling thread's machine. The first call makes it.
  static Machine& of_this_thread();
  // Returns the machine that the calling fiber runs on.
  static Machine& running() { return *running_; }

  // Runs all threadgroups. Returns the error, or an empty text.
  std::string run(const EmulatedKernel& kernel, const Dispatch& dispatch, const Options& options);
  // Returns the counts of the last run.
  const std::vector<BufferCounts>& counts() const { return tracer_.counts(); }

  // Waits until all other lanes of the SIMD group, or all threads of the threadgroup, make the same
  // call. This and the functions below are called by a running fiber.
  void arrive(Collective kind, const void* place, std::uint8_t flags = 0) {
    lane_->kind = kind;
    lane_->place = place;
    lane_->flags = flags;
    const SimdGroup& group = *simd_group_;
    const std::uint32_t next = (lane_->thread + group.stride) % kLanes;
    switch_to(next == group.first ? finish_segment() : lanes_[group.index * kLanes + next]);
  }
  // Sets the run's error: what the thread does wrong.
  void note_error(const std::string& what);
  // Ends the run. Objects on the fiber's stack are not destroyed.
  [[noreturn]] void stop();

  SimdGroup& simd_group() { return *simd_group_; }
  Lane& lane() { return *lane_; }
  std::uint32_t lane_index() const { return lane_->thread % kLanes; }

 private:
  static void enter_fiber();

  void make_fibers(int num_threads);
  void start_threadgroup();
  void begin_epoch();  // an epoch lasts up to the threadgroup's next barrier
  void begin_segment(SimdGroup& group);
  Lane& finish_segment();
  void check_together(const SimdGroup& group);
  void compute(SimdGroup& group, Collective kind);
  Lane& first_lane() {
    return lanes_[simd_group_->index * kLanes + simd_group_->first];
  }  // first lane of the segment
  void switch_to(Lane& next) {
    if (kernel_->is_traced && &next != &caller_)
      tracer_.begin_lane(next.thread % kLanes, next.stack);
    if (lane_ == &next) return;
    Lane* const from = std::exchange(lane_, &next);
    switch_stack(&from->stack_top, next.stack_top);
  }

  static constinit thread_local Machine* running_;

  std::byte* stacks_ = nullptr;
  int num_fibers_ = 0;
  std::array<Lane, kMaxThreads> lanes_;
  std::array<SimdGroup, kMaxThreads / kLanes> simd_groups_;
  Lane caller_;
  Lane* lane_ = nullptr;
  SimdGroup* simd_group_ = nullptr;
  Tracer tracer_;

  const EmulatedKernel* kernel_ = nullptr;
  const Dispatch* dispatch_ = nullptr;
  Options options_;
  Shuffler shuffler_{0};
  std::uint32_t num_simd_groups_ = 0;
  std::vector<std::uint32_t> threadgroups_;  // the order in which they run
  std::size_t next_threadgroup_ = 0;
  std::vector<std::uint32_t> turns_;  // the order of SIMD groups up to the next barrier
  std::uint32_t turn_ = 0;
  std::string error_;

  ThreadArguments arguments_;
  std::vector<std::byte*> buffers_;
  alignas(16) std::array<std::byte, 256> parameters_;
  std::unique_ptr<std::byte[]> shared_;
};

}  // namespace pagoda::emulator
