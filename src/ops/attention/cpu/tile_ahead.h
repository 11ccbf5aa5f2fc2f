// The entries that the cpu attention reads next, fetched into the first-level cache among products,
// which leave requests for memory time; among shuffles these would hold up the loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pagoda::cpu {

// A queue of keys and values, or of either.
class TileAhead {
 public:
  struct Entries {
    const std::byte* base = nullptr;
    const std::int64_t* next = nullptr;  // offsets of entries
    const std::int64_t* last = nullptr;
    std::int64_t bytes = 0;  // of each

    bool is_empty() const { return next == last; }
  };

  // An entry's lines, from the next one on.
  struct Lines {
    const std::byte* at = nullptr;
    const std::byte* end = nullptr;
  };

  // Fetches a queue's lines on the way of a loop, which keeps it in registers. The queue is not used
  // otherwise meanwhile.
  class Cursor {
   public:
    explicit Cursor(TileAhead& queue) : queue_(queue), lines_(queue.lines_) {}
    ~Cursor() { queue_.lines_ = lines_; }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    // Fetches two lines: the products of few rows are over before a tile has been fetched one at a
    // time.
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

  // Fetches what is left at once.
  void finish() {
    Cursor cursor(*this);
    while (!cursor.is_done()) cursor.advance();
  }
  // Does so, and queues entries.
  void start(const Entries& entries) {
    finish();
    now_ = entries;
  }
  // Queues entries to be fetched after those. REQUIRES: start() was called last.
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
