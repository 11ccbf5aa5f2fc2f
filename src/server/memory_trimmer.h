// MemoryTrimmer: gives freed memory back to the system once the server is idle, and from time to
// time between large requests.
//
// glibc's malloc keeps freed memory for later calls, in an arena per thread, permanently. So a
// burst of large requests would hold its memory until the next restart. With other allocators this
// class does nothing. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "core/clock.h"

namespace pagoda {

// Makes malloc take each block of 1 MiB or more from the system by itself, and give it back when it
// is freed. By default glibc raises this bound to the largest freed block, up to 32 MiB. Then large
// blocks lie in its arenas among small ones, which keep them there. REQUIRES: the process has no
// other thread yet.
void give_back_large_blocks();

class MemoryTrimmer {
 public:
  // Trims after `rest_s` seconds without a call of note_request(), or `rest_s` seconds after a call
  // with a large body. Throws NoThread.
  explicit MemoryTrimmer(double rest_s = 5);
  ~MemoryTrimmer();
  MemoryTrimmer(const MemoryTrimmer&) = delete;
  MemoryTrimmer& operator=(const MemoryTrimmer&) = delete;

  void note_request(std::size_t num_body_bytes);

 private:
  void run();

  const double rest_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_request_ = false;  // a request has come since the thread last looked
  std::optional<Clock::TimePoint> large_request_at_;  // the first since the last trim
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pagoda
