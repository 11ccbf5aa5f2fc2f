#include "backend/gpu/gpu_exec.h"

#include <utility>

namespace pagoda::gpu {
std::vector<Tensor> run(Exec& exec, GpuOp op) {
  return gpu_exec(exec).run(std::move(op));
}

bool uses_kernels(const Exec& exec) {
  return gpu_exec(exec).host_exec() == nullptr;
}

Exec& host_exec(const Exec& exec) {
  return *gpu_exec(exec).host_exec();
}

MatrixUnits matrix_units(const Exec& exec) {
  return gpu_exec(exec).matrix_units();
}

}  // namespace pagoda::gpu
