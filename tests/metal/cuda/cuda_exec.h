// CudaExec: the mlx backend's Exec, with a CUDA GPU instead of MLX and Metal.
//
// The ops' own bodies build their launches, and run() immediately launches the kernels that nvcc
// has compiled. It defines the functions that backend/gpu/gpu_op.h and its neighbours declare, so
// it is linked instead of the backend.
#pragma once

#include <memory>
#include <vector>

#include "backend/gpu/gpu_exec.h"
#include "tensor/exec.h"
#include "tests/metal/cuda/device.h"

namespace pagoda::metal_on_cuda {

class CudaExec final : public gpu::GpuExec {
 public:
  // Makes an Exec. If `poisons` is true, new memory is filled with NaN. For a sanitizer it must be
  // false, because filled memory counts as written.
  CudaExec(std::shared_ptr<Device> device, bool poisons)
      : GpuExec(Backend::kMlx), device_(std::move(device)), poisons_(poisons) {}

  Device& device() { return *device_; }
  gpu::MatrixUnits matrix_units() const override { return matrix_units_; }
  void set_matrix_units(gpu::MatrixUnits units) { matrix_units_ = units; }
  // Records every launch until it is called with null. Meanwhile scratch memory is kept.
  void set_record(std::vector<KernelLaunch>* record) { record_ = record; }

  std::vector<Tensor> run(gpu::GpuOp op) override;

  Tensor allocate(DType dtype, const Shape& shape) override;
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  Status fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
              const std::function<void(std::uint32_t* values)>& write) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  Status evaluate(std::span<const Tensor> roots) override;
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  std::int64_t available_bytes() const override { return std::int64_t{1} << 40; }

 private:
  BufferRef new_buffer(std::size_t bytes);

  std::shared_ptr<Device> device_;
  bool poisons_;
  gpu::MatrixUnits matrix_units_ = gpu::MatrixUnits::kAscendingChain;
  std::vector<KernelLaunch>* record_ = nullptr;
  std::vector<BufferRef> kept_;
};

}  // namespace pagoda::metal_on_cuda
