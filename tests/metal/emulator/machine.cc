#include "tests/metal/emulator/machine.h"

#include <sys/mman.h>
#include <xmmintrin.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace pagoda::emulator {
namespace {

// Not a multiple of a page, so that stacks do not all map to the same sets of a cache.
constexpr std::size_t kStackStride = kStackBytes + 832;

constexpr unsigned kFlushDenormals = 0x8040;  // FTZ and DAZ of x86's MXCSR

// The top of the stack of a fiber that has not begun, in the layout that switch_stack() pops.
struct FirstFrame {
  void (*entry)() = nullptr;
  void* return_address = nullptr;  // the entry function never returns
};
static_assert(sizeof(FirstFrame) % 16 == 0, "a function begins 8 bytes below a multiple of 16");

}  // namespace

void Shuffler::shuffle(std::vector<std::uint32_t>& values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[next() % i]);
}

Machine::Machine() : shared_(new std::byte[kMaxThreadgroupBytes + 16]) {
  void* const memory = mmap(nullptr, kStackStride * kMaxThreads, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  stacks_ = static_cast<std::byte*>(memory);
  for (int i = 0; i < kMaxThreads; ++i) {
    lanes_[i].thread = static_cast<std::uint32_t>(i);
    lanes_[i].stack = stacks_ + i * kStackStride;
  }
  for (std::uint32_t i = 0; i < simd_groups_.size(); ++i) simd_groups_[i].index = i;
}

Machine::~Machine() {
  munmap(stacks_, kStackStride * kMaxThreads);
}

constinit thread_local Machine* Machine::running_ = nullptr;

Machine& Machine::of_this_thread() {
  thread_local Machine machine;
  running_ = &machine;
  return machine;
}

void Machine::make_fibers(int num_threads) {
  for (; num_fibers_ < num_threads; ++num_fibers_) {
    Lane& lane = lanes_[num_fibers_];
    lane.trail = 0;
    lane.stack_top = new (lane.stack + kStackBytes - sizeof(FirstFrame))
        FirstFrame{.entry = &Machine::enter_fiber};
  }
}

void Machine::enter_fiber() {
  Machine& machine = running();
  while (true) {
    ThreadArguments arguments = machine.arguments_;
    arguments.thread = machine.lane_->thread;
    arguments.simd_group = arguments.thread / kLanes;
    arguments.lane = arguments.thread % kLanes;
    machine.kernel_->call(arguments);
    machine.arrive(Collective::kEnd, nullptr);
  }
}

std::string Machine::run(const EmulatedKernel& kernel, const Dispatch& dispatch,
                         const Options& options) {
  kernel_ = &kernel;
  dispatch_ = &dispatch;
  options_ = options;
  shuffler_ = Shuffler(options.seed);
  error_.clear();
  make_fibers(dispatch.num_threads);

  buffers_.clear();
  for (const BufferBinding& buffer : dispatch.buffers) buffers_.push_back(buffer.data);
  std::memcpy(parameters_.data(), dispatch.parameters.data(), dispatch.parameters.size());
  arguments_.buffers = buffers_.data();
  arguments_.parameters = parameters_.data();
  arguments_.shared = shared_.get();

  const auto [x, y, z] = dispatch.num_groups;
  threadgroups_.resize(static_cast<std::size_t>(x) * y * z);
  for (std::uint32_t i = 0; i < threadgroups_.size(); ++i) threadgroups_[i] = i;
  shuffler_.shuffle(threadgroups_);
  next_threadgroup_ = 0;
  num_simd_groups_ = static_cast<std::uint32_t>(dispatch.num_threads / kLanes);
  turns_.resize(num_simd_groups_);
  for (std::uint32_t i = 0; i < num_simd_groups_; ++i) turns_[i] = i;

  if (kernel.is_traced) tracer_.begin_run(kernel, dispatch, arguments_, options.counts);
  if (!threadgroups_.empty()) {
    start_threadgroup();
    lane_ = &caller_;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushDenormals);
    switch_to(first_lane());
    _mm_setcsr(before);
  }
  if (kernel.is_traced) tracer_.end_run();
  return std::exchange(error_, {});
}

void Machine::start_threadgroup() {
  const std::uint32_t index = threadgroups_[next_threadgroup_++];
  const auto x = static_cast<std::uint32_t>(dispatch_->num_groups[0]);
  const auto y = static_cast<std::uint32_t>(dispatch_->num_groups[1]);
  arguments_.group[0] = index % x;
  arguments_.group[1] = index / x % y;
  arguments_.group[2] = index / x / y;
  // Overwrites an earlier threadgroup's values with NaN, because kernels must not rely on them.
  std::memset(shared_.get(), 0xff, static_cast<std::size_t>(dispatch_->threadgroup_bytes));
  if (kernel_->is_traced) tracer_.begin_threadgroup();
  begin_epoch();
}

void Machine::begin_epoch() {
  shuffler_.shuffle(turns_);
  turn_ = 0;
  begin_segment(simd_groups_[turns_[0]]);
}

void Machine::begin_segment(SimdGroup& group) {
  simd_group_ = &group;
  const std::uint32_t random = shuffler_.next();
  group.stride = random % kLanes | 1;
  group.first = (random >> 8) % kLanes;
  if (kernel_->is_traced) tracer_.begin_segment(group.index);
}

void Machine::check_together(const SimdGroup& group) {
  const Lane* const lanes = &lanes_[group.index * kLanes];
  for (int i = 1; i < kLanes; ++i) {
    if (lanes[i].kind == lanes[0].kind && lanes[i].place == lanes[0].place &&
        lanes[i].trail == lanes[0].trail)
      continue;
    note_error("lanes of a SIMD group part ways at what they must do together");
    stop();
  }
}

// Computes the call at which all lanes have arrived. Returns the lane that continues.
Lane& Machine::finish_segment() {
  SimdGroup& group = *simd_group_;
  check_together(group);
  if (kernel_->is_traced) tracer_.end_segment();
  const Collective kind = lane_->kind;
  if (kind == Collective::kThreadgroupBarrier || kind == Collective::kEnd) {
    const Lane& first = lanes_[turns_[0] * kLanes];
    if (kind != first.kind || lane_->place != first.place) {
      note_error("a threadgroup's barrier that not all of its threads reach");
      stop();
    }
    if (++turn_ == num_simd_groups_) {
      if (kind == Collective::kThreadgroupBarrier) {
        if (kernel_->is_traced)
          tracer_.pass_barrier((lane_->flags & 1) != 0, (lane_->flags & 2) != 0);
        begin_epoch();
      } else if (next_threadgroup_ < threadgroups_.size()) {
        start_threadgroup();
      } else {
        return caller_;
      }
    } else {
      begin_segment(simd_groups_[turns_[turn_]]);
    }
  } else {
    compute(group, kind);
    begin_segment(group);
  }
  return first_lane();
}

void Machine::note_error(const std::string& what) {
  const auto [x, y, z] = arguments_.group;
  error_ = "threadgroup (" + std::to_string(x) + ", " + std::to_string(y) + ", " +
           std::to_string(z) + "), thread " + std::to_string(lane_->thread) + " (SIMD group " +
           std::to_string(lane_->thread / kLanes) + ", lane " + std::to_string(lane_index()) +
           "): " + what;
}

void Machine::stop() {
  num_fibers_ = 0;  // no fiber continues
  switch_to(caller_);
  std::abort();
}

}  // namespace pagoda::emulator
