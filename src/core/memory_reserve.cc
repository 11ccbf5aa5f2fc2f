#include "core/memory_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace pagoda {
namespace {

std::atomic<void*> reserve = nullptr;

void free_reserve() {
  void* const bytes = reserve.exchange(nullptr);
  if (bytes == nullptr) throw std::bad_alloc();
  std::free(bytes);
}

}  // namespace

void keep_memory_reserve() {
  if (reserve.load() != nullptr) return;
  std::set_new_handler(free_reserve);
  // Not operator new: if memory is short, it calls free_reserve().
  void* const bytes = std::malloc(kMemoryReserveBytes);
  void* expected = nullptr;
  if (!reserve.compare_exchange_strong(expected, bytes)) std::free(bytes);
}

}  // namespace pagoda
