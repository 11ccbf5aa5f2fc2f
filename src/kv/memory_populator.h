// MemoryPopulator: has the system give a store the memory that it has promised, before anybody
// writes to it.
//
// Mapped memory comes page by page as it is first written, so a server's resident memory would grow
// for as long as its cache has unused blocks, and the first requests would pay for the pages. A
// thread of low priority asks for them, in the background: a server listens at once.
//
// Linux from 5.14; elsewhere, and on backends whose memory is not mapped lazily, nothing happens.
// What is written meanwhile stays (MADV_POPULATE_WRITE changes no byte). Making and destroying
// belong to one thread.
#pragma once

#include <thread>
#include <vector>

#include "tensor/tensor.h"

namespace pagoda {

class MemoryPopulator {
 public:
  MemoryPopulator() = default;  // of nothing
  explicit MemoryPopulator(std::vector<Tensor> memory);

 private:
  std::jthread thread_;  // its end asks it to stop, and waits for some milliseconds at most
};

}  // namespace pagoda
