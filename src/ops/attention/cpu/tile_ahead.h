// Prefetches the entries that the cpu attention reads next into L1, during products, which leave
// memory time for the requests. During shuffles, the requests would delay the loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pagoda::cpu {

// A queue of entries to prefetch: keys, values, or both.
class TileAhead {
 public:
  struct Entries {
    const std::byte* base = nullptr;
    const std::int64_t* next = nullptr;  // offsets of entries
    const std::int64_t* last = nullptr;
    std::int64_t bytes = 0;  // bytes of each entry

    bool is_empty() const { return next == last; }
  };

  // The lines of an entry that are left to prefetch.
  struct Lines {
    const std::byte* at = nullptr;
    const std::byte* end = nullptr;
  };

  // Prefetches a queue's lines within a loop, which keeps the Cursor in registers. Meanwhile the
  // queue is not used otherwise.
  class Cursor {
   public:
    explicit Cursor(TileAhead& queue) : queue_(queue), lines_(queue.lines_) {}
    ~Cursor() { queue_.lines_ = lines_; }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    // Prefetches two lines. With one line at a time, the products of few rows would end before a
    // tile has been prefetched.
    void advance() {
      if (lines_.at >= lines_.end) [[unlikely]] {
        if (queue_.is_empty()) return;
        lines_ = queue_.take();
      }
      __builtin_prefetch(lines_.at, 0, 3);
      __builtin_prefetch(lines_.at + 64, 0, 3);
      lines_.at += 128;
    }
    bool is_done() const { return lines_.at >= lines_.end && queue_.is_empty(); }

   private:
    TileAhead& queue_;
    Lines lines_;
  };

  // Prefetches all lines that are left, at once.
  void finish() {
    Cursor cursor(*this);
    while (!cursor.is_done()) cursor.advance();
  }
  // Prefetches all lines that are left, and queues entries.
  void start(const Entries& entries) {
    finish();
    now_ = entries;
  }
  // Queues entries to be prefetched after those of start(). REQUIRES: start() was called last.
  void follow(const Entries& entries) { then_ = entries; }

 private:
  bool is_empty() const { return now_.is_empty() && then_.is_empty(); }
  // Takes the next entry from the queue.
  Lines take() {
    if (now_.is_empty()) now_ = std::exchange(then_, {});
    const std::byte* const entry = now_.base + *now_.next++;
    return {entry, entry + now_.bytes};
  }

  Entries now_;
  Entries then_;
  Lines lines_;
};

}  // namespace pagoda::cpu
