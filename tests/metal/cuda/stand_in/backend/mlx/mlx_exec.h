// Replacements for the parts of MlxExec and MLX's arrays that mlx_weight.cc uses. The harness has
// neither MlxExec nor MLX: this folder comes first in its include path.
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/exec.h"

namespace pagoda::mlx {

// Persistent memory. An Apple GPU shares it with the host. Here the host writes to a copy, which is
// copied to the GPU before the next launch that reads it.
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

// An Exec without a host Exec: it runs no bodies on the host.
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
