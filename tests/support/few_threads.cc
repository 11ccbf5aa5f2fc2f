// A library to preload into a program (LD_PRELOAD): after PAGODA_NUM_THREADS threads, the system
// seems to have no more.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

// Replaces the system's pthread_create.
extern "C" int create_few(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                          void* argument) noexcept __asm__("pthread_create");

int create_few(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
               void* argument) noexcept {
  static const long num_threads = std::atol(std::getenv("PAGODA_NUM_THREADS"));
  static std::atomic<long> num_started = 0;
  if (num_started++ >= num_threads) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, work, argument);
}
