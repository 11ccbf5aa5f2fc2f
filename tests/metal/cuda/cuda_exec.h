// CudaExec: the mlx backend's Exec with a CUDA GPU in MLX's and Metal's place.
//
// The ops' own bodies build their launches for it, and run() launches at once what nvcc has made of
// their kernels. It defines what backend/mlx/mlx_op.h and its neighbours declare, so it is linked
// instead of the backend.
#pragma once

#include <memory>
#include <vector>

#include "backend/mlx/matrix_units.h"
#include "backend/mlx/mlx_op.h"
#include "tensor/exec.h"
#include "tests/metal/cuda/device.h"

namespace pagoda::metal_on_cuda {

class CudaExec final : public Exec {
 public:
  // Makes an Exec. poisons: whether memory that has not been written is NaN; a sanitizer would take
  // it as written.
  CudaExec(std::shared_ptr<Device> device, bool poisons)
      : Exec(Backend::kMlx), device_(std::move(device)), poisons_(poisons) {}

  Device& device() { return *device_; }
  mlx::MatrixUnits matrix_units() const { return matrix_units_; }
  void set_matrix_units(mlx::MatrixUnits units) { matrix_units_ = units; }
  // Notes every launch from now on, until it is called with null; scratch memory lives on.
  void set_record(std::vector<KernelLaunch>* record) { record_ = record; }

  std::vector<Tensor> run(const mlx::MlxOp& op);

  Tensor allocate(DType dtype, const Shape& shape) override;
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  Status evaluate(std::span<const Tensor> roots) override;
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  std::int64_t available_bytes() const override { return std::int64_t{1} << 40; }

 private:
  BufferRef new_buffer(std::size_t bytes);

  std::shared_ptr<Device> device_;
  bool poisons_;
  mlx::MatrixUnits matrix_units_ = mlx::MatrixUnits::kAscendingChain;
  std::vector<KernelLaunch>* record_ = nullptr;
  std::vector<BufferRef> kept_;
};

}  // namespace pagoda::metal_on_cuda
