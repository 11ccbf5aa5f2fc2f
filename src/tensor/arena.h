// Arena: the memory of a step's results.
//
// One range of addresses is reserved once. Pages are taken from the system at their first touch and
// kept. A span is cut from the lowest hole that is large enough (first fit). When its last handle
// is released, it is joined with neighbouring holes. So the same sequence of allocations and
// releases takes the same addresses. A steady step touches no page for the first time and allocates
// nothing.
//
//   reserved  |span|hole|span|span|hole ........................................|
//
// Thread-safe: a handle's last release may come from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "tensor/buffer.h"
#include "tensor/hole_list.h"

namespace pagoda {

class Arena {
 public:
  struct Options {
    // Addresses, not memory. If the system refuses so many, fewer are reserved, so that at least as
    // many are left to other parts of the process.
    std::size_t reserve_bytes = std::size_t{64} << 30;
    bool huge_pages = false;  // ask the system for 2 MiB pages
  };
  static constexpr std::size_t kAlignment = 64;  // bytes; a cache line, and the widest vector

  // Reserves addresses. kResourceExhausted: not even 64 MiB of addresses.
  static Result<std::shared_ptr<Arena>> create(const Options& options);

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns `bytes` of undefined values at a multiple of kAlignment. Running out of addresses fails
  // a check: limits keep a step's results far below. A buffer may outlive the arena's owner.
  BufferRef allocate(std::size_t bytes);

  std::size_t reserved_bytes() const { return reserved_bytes_; }
  std::size_t used_bytes() const;  // of live buffers, rounded up to kAlignment

 private:
  class Span;
  // It is held for tens of nanoseconds, some hundred times a step, nearly always by one thread. A
  // mutex took a third of an allocation's time.
  class SpinLock {
   public:
    void lock();
    void unlock() { is_held_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> is_held_{false};
  };

  Arena(std::byte* base, std::size_t reserved_bytes);
  ~Arena();
  void lose_owner();
  std::size_t take(std::size_t size);  // an offset
  Span* take_node();
  void release(Span* span);

  std::byte* base_;
  std::size_t reserved_bytes_;
  mutable SpinLock lock_;
  HoleList holes_;
  std::vector<std::unique_ptr<Span>> nodes_;  // every Span ever made; free_nodes_ has the free ones
  std::vector<Span*> free_nodes_;
  std::size_t used_bytes_ = 0;
  std::size_t num_lent_ = 0;  // spans
  bool has_owner_ = true;     // false: the return of the last span deletes the arena
};

// Maps zeroed memory outside of any arena. The last release returns it to the system.
// kResourceExhausted: the system refuses.
Result<BufferRef> map_zeroed_bytes(std::size_t bytes, bool huge_pages);

// Makes the system allocate the pages of mapped bytes now instead of at their first touch; values
// stay. On systems without this function (Linux before 5.14, others) it does nothing.
void prefault(std::span<std::byte> bytes);

}  // namespace pagoda
