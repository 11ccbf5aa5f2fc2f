// GpuExec: an Exec whose ops are GpuOps, recorded and computed later. Backends mlx and cuda have
// one each.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/matrix_units.h"
#include "tensor/exec.h"

namespace pagoda::gpu {

class GpuExec : public Exec {
 public:
  // Records the op and returns its outputs.
  virtual std::vector<Tensor> run(GpuOp op) = 0;
  // Returns the Exec of the cpu backend whose bodies compute the ops; null if ops are kernels.
  virtual Exec* host_exec() const { return nullptr; }
  virtual MatrixUnits matrix_units() const = 0;
  // Fills a part of a persistent int32 tensor that no op has read yet: `write` gets host memory of
  // `count` zeros, which become the tensor's elements from `first` on. Each part is filled once.
  virtual Status fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
                      const std::function<void(std::uint32_t* values)>& write) = 0;

 protected:
  using Exec::Exec;
};

// Casts the Exec of an op's body: the op's dispatch has already checked the Exec's backend.
inline GpuExec& gpu_exec(Exec& exec) {
  return static_cast<GpuExec&>(exec);
}
inline const GpuExec& gpu_exec(const Exec& exec) {
  return static_cast<const GpuExec&>(exec);
}

}  // namespace pagoda::gpu
