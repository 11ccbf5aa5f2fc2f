// MemoryTrimmer: gives memory that requests took back to the system once the server is at rest, and
// now and then between large ones.
//
// glibc's malloc keeps what was freed for its next call, in an arena a thread, for good: a burst of
// large requests would hold its memory until the next restart. With other allocators it does
// nothing. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "core/clock.h"

namespace pagoda {

// Lets malloc take each block of 1 MiB or more from the system alone, and give it back when it is
// freed. glibc would raise that bound to the largest block that was freed, up to 32 MiB. Large blocks
// would then lie in its arenas among small ones, which keep them there. REQUIRES: the process has no
// other thread yet.
void give_back_large_blocks();

class MemoryTrimmer {
 public:
  // Trims when that many seconds have passed without a call of note_request(), or since a call with
  // a large body. Throws NoThread.
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
  bool has_request_ = false;                          // since the thread last looked
  std::optional<Clock::TimePoint> large_request_at_;  // the first since it last trimmed
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pagoda
