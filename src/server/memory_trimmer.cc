#include "server/memory_trimmer.h"

#include <chrono>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>

#include "core/start_thread.h"
#endif

namespace pagoda {
namespace {

// The size of a large body. It takes so much memory to read that giving this back is worth it.
constexpr std::size_t kLargeBodyBytes = 256 << 10;

void trim() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

void give_back_large_blocks() {
#ifdef __GLIBC__
  constexpr int kLargeBlockBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
  mallopt(M_TRIM_THRESHOLD, kLargeBlockBytes);
#endif
}

MemoryTrimmer::MemoryTrimmer(double rest_s)
    : rest_s_(rest_s), thread_(start_thread([this] { run(); })) {}

MemoryTrimmer::~MemoryTrimmer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void MemoryTrimmer::note_request(std::size_t num_body_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (num_body_bytes >= kLargeBodyBytes && !large_request_at_)
      large_request_at_ = Clock::system().now();
    if (std::exchange(has_request_, true)) return;
  }
  changed_.notify_one();
}

void MemoryTrimmer::run() {
  std::unique_lock lock(mutex_);
  const auto is_called = [this] { return has_request_ || stopping_; };
  while (!stopping_) {
    changed_.wait(lock, is_called);
    // Each request delays the trimming, so that no request waits for the allocator.
    const auto is_due = [this] {
      return large_request_at_ &&
             seconds_between(*large_request_at_, Clock::system().now()) > rest_s_;
    };
    while (has_request_ && !stopping_ && !is_due()) {
      has_request_ = false;
      changed_.wait_for(lock, std::chrono::duration<double>(rest_s_), is_called);
    }
    if (stopping_) return;
    large_request_at_.reset();
    lock.unlock();
    trim();
    lock.lock();
  }
}

}  // namespace pagoda
