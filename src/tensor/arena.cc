#include "tensor/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace pagoda {
namespace {

constexpr std::size_t kMinReserveBytes = std::size_t{64} << 20;
// Initial room in the lists of spans. A list may grow in the first steps, but not later.
constexpr std::size_t kExpectedSpans = 1024;

std::byte* reserve(std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

void advise_huge_pages(std::byte* base, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  // Advice: a system without huge pages works as well, more slowly.
  (void)madvise(base, bytes, MADV_HUGEPAGE);
#endif
}

constexpr std::size_t round_up(std::size_t bytes) {
  const std::size_t size = (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
  return std::max(size, Arena::kAlignment);
}

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer(std::byte* data, std::size_t size) : Buffer(MemorySpace::kHost, data, size) {}

 private:
  ~MappedBuffer() override { munmap(data_, std::max<std::size_t>(size_, 1)); }
  void release() override { delete this; }
};

}  // namespace

class Arena::Span final : public Buffer {
 public:
  Span() : Buffer(MemorySpace::kHost, nullptr, 0) {}
  ~Span() override = default;

  void lend(Arena* arena, std::byte* data, std::size_t size) {
    arena_ = arena;
    data_ = data;
    size_ = size;
  }

 private:
  friend class Arena;
  void release() override { arena_->release(this); }

  Arena* arena_ = nullptr;
};

void Arena::SpinLock::lock() {
  constexpr int kSpins = 100;
  for (int spin = 0; is_held_.exchange(true, std::memory_order_acquire); ++spin) {
    if (spin >= kSpins) std::this_thread::yield();  // the holder may not be running
  }
}

Result<std::shared_ptr<Arena>> Arena::create(const Options& options) {
  for (std::size_t bytes = options.reserve_bytes; bytes >= kMinReserveBytes; bytes /= 2) {
    if (std::byte* base = reserve(bytes)) {
      if (bytes < options.reserve_bytes) {
        (void)munmap(base + bytes / 2, bytes - bytes / 2);
        bytes /= 2;
      }
      if (options.huge_pages) advise_huge_pages(base, bytes);
      return std::shared_ptr<Arena>(new Arena(base, bytes),
                                    [](Arena* arena) { arena->lose_owner(); });
    }
  }
  return resource_exhausted("[arena] expected {} bytes of address space, got none",
                            options.reserve_bytes);
}

Arena::Arena(std::byte* base, std::size_t reserved_bytes)
    : base_(base), reserved_bytes_(reserved_bytes), holes_(reserved_bytes, kExpectedSpans) {
  nodes_.reserve(kExpectedSpans);
  free_nodes_.reserve(kExpectedSpans);
}

Arena::~Arena() {
  munmap(base_, reserved_bytes_);
}

BufferRef Arena::allocate(std::size_t bytes) {
  const std::size_t size = round_up(bytes);
  const std::lock_guard lock(lock_);
  Span* span = take_node();
  span->lend(this, base_ + take(size), bytes);
  used_bytes_ += size;
  ++num_lent_;
  return BufferRef(span);
}

std::size_t Arena::used_bytes() const {
  const std::lock_guard lock(lock_);
  return used_bytes_;
}

std::size_t Arena::take(std::size_t size) {
  const std::optional<std::size_t> begin = holes_.take(size);
  PAGODA_CHECK(begin, fmt::format("[arena] expected {} bytes free of {}, {} in use", size,
                                  reserved_bytes_, used_bytes_));
  return *begin;
}

Arena::Span* Arena::take_node() {
  if (free_nodes_.empty()) return nodes_.emplace_back(std::make_unique<Span>()).get();
  Span* span = free_nodes_.back();
  free_nodes_.pop_back();
  return span;
}

void Arena::release(Span* span) {
  bool is_last = false;
  {
    const std::lock_guard lock(lock_);
    const std::size_t size = round_up(span->size());
    holes_.put_back(static_cast<std::size_t>(span->host() - base_), size);
    used_bytes_ -= size;
    free_nodes_.push_back(span);
    is_last = --num_lent_ == 0 && !has_owner_;
  }
  if (is_last) delete this;
}

void Arena::lose_owner() {
  bool is_last = false;
  {
    const std::lock_guard lock(lock_);
    has_owner_ = false;
    is_last = num_lent_ == 0;
  }
  if (is_last) delete this;
}

Result<BufferRef> map_zeroed_bytes(std::size_t bytes, bool huge_pages) {
  // Private anonymous pages are zero, and cost memory only once they are touched.
  void* data = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return resource_exhausted("[memory] expected {} bytes, got none", bytes);
  if (huge_pages) advise_huge_pages(static_cast<std::byte*>(data), bytes);
  return BufferRef(new MappedBuffer(static_cast<std::byte*>(data), bytes));
}

void prefault(std::span<std::byte> bytes) {
#ifdef MADV_POPULATE_WRITE
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t before = address % page_size;
  (void)madvise(bytes.data() - before, bytes.size() + before, MADV_POPULATE_WRITE);
#endif
}

}  // namespace pagoda
