#include "kv/memory_populator.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace pagoda {
namespace {

#ifdef MADV_POPULATE_WRITE

// Who maps or unmaps memory waits for a piece: for 10 ms where the machine is a guest whose host
// has to find the memory first (2.5 s a GiB), else for 1 ms.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
// A quarter of a core where all are busy. At the lowest priority 4 GiB would take minutes then.
constexpr int kNiceness = 5;

// False: the system cannot, or will not.
bool populate(const Tensor& tensor, const std::stop_token& stop) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.buffer()->data());
  const std::uintptr_t begin = first / page * page;
  const std::uintptr_t end = (first + tensor.buffer()->size() + page - 1) / page * page;
  for (std::uintptr_t at = begin; at < end && !stop.stop_requested(); at += kPieceBytes) {
    const std::size_t bytes = std::min<std::size_t>(kPieceBytes, end - at);
    if (madvise(reinterpret_cast<void*>(at), bytes, MADV_POPULATE_WRITE) != 0) return false;
  }
  return true;
}

std::jthread start(std::vector<Tensor> memory) {
  return std::jthread([memory = std::move(memory)](const std::stop_token& stop) {
    setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread alone
    for (const Tensor& tensor : memory) {
      if (!populate(tensor, stop)) return;
    }
  });
}

#else

std::jthread start(const std::vector<Tensor>&) {
  return {};
}

#endif

}  // namespace

MemoryPopulator::MemoryPopulator(std::vector<Tensor> memory) {
  std::erase_if(memory, [](const Tensor& tensor) { return tensor.buffer()->data() == nullptr; });
  if (!memory.empty()) thread_ = start(std::move(memory));
}

}  // namespace pagoda
