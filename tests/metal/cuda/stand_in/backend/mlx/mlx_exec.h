// Stand-ins for what mlx_weight.cc needs of MlxExec and MLX's arrays, for the harness, which has
// neither: its folder comes first among those of headers.
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/exec.h"

namespace pagoda::mlx {

// Persistent memory, which a GPU of Apple's shares with the host. Here the host writes to a copy,
// which the GPU gets before the next launch that reads it.
class SharedMemory {
 public:
  explicit SharedMemory(std::byte* bytes) : bytes_(bytes) {}
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(bytes_);
  }

 private:
  std::byte* bytes_;
};
SharedMemory whole_array(const Tensor& tensor);

// An Exec that has no other one for bodies on the host.
struct HostBodies {
  std::unique_ptr<Exec> exec;
};
struct HostlessExec {
  std::shared_ptr<HostBodies> host() const { return nullptr; }
};
inline HostlessExec mlx_exec(const Exec&) {
  return {};
}

}  // namespace pagoda::mlx
