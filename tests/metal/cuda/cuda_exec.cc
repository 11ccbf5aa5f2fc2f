#include "tests/metal/cuda/cuda_exec.h"

#include <fmt/format.h>

#include <utility>

#include "backend/backend.h"
#include "backend/mlx/mlx_exec.h"  // the stand-in
#include "tensor/num_bytes.h"

namespace pagoda::metal_on_cuda {
namespace {

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<Device> device, std::size_t size)
      : Buffer(MemorySpace::kDevice, nullptr, size),
        device_(std::move(device)),
        address_(device_->allocate(size)) {}
  ~CudaBuffer() override { device_->release(address_); }

  // Copies what the host has written in shared() to the GPU, and returns the memory's address
  // there.
  Address address() {
    if (!shared_.empty()) device_->copy_in(address_, shared_);
    shared_.clear();
    return address_;
  }
  // Returns the host's copy of the memory, which it may write until the next call of address().
  std::byte* shared() {
    if (shared_.empty()) {
      shared_.resize(size());
      device_->copy_out(shared_, address_);
    }
    return shared_.data();
  }

  std::vector<std::byte> read;  // the host's copy for read()

 private:
  void release() override { delete this; }

  std::shared_ptr<Device> device_;
  Address address_;
  std::vector<std::byte> shared_;
};

CudaBuffer& buffer_of(const Tensor& tensor) {
  return static_cast<CudaBuffer&>(*tensor.buffer().get());
}

Address address_of(const Tensor& tensor) {
  return buffer_of(tensor).address() +
         static_cast<Address>(tensor.offset()) * dtype_size(tensor.dtype());
}

}  // namespace

BufferRef CudaExec::new_buffer(std::size_t bytes) {
  auto* const buffer = new CudaBuffer(device_, bytes);
  if (poisons_) device_->fill(buffer->address(), bytes, std::byte{0xff});
  return BufferRef(buffer);
}

std::vector<Tensor> CudaExec::run(const mlx::MlxOp& op) {
  std::vector<Tensor> outputs;
  for (const mlx::OpOutput& output : op.outputs) {
    if (output.memory_of == mlx::kFresh) {
      outputs.emplace_back(new_buffer(num_bytes(output.dtype, output.shape)), output.dtype,
                           output.shape);
    } else {
      const Tensor& input = op.inputs[static_cast<std::size_t>(output.memory_of)];
      outputs.emplace_back(input.buffer(), output.dtype, output.shape, input.offset());
    }
  }
  std::vector<BufferRef> scratch;
  for (const std::size_t bytes : op.launch.scratch_bytes) scratch.push_back(new_buffer(bytes));
  const auto address = [&](const mlx::MetalOperand& operand) {
    const auto i = static_cast<std::size_t>(operand.index);
    switch (operand.kind) {
      case mlx::MetalOperand::Kind::kInput:
        return address_of(op.inputs.at(i));
      case mlx::MetalOperand::Kind::kOutput:
        return address_of(outputs.at(i));
      case mlx::MetalOperand::Kind::kScratch:
        break;
    }
    return static_cast<CudaBuffer&>(*scratch.at(i).get()).address();
  };
  for (const mlx::MetalDispatch& dispatch : op.launch.dispatches) {
    KernelLaunch launch{.function = dispatch.function,
                        .buffers = {},
                        .parameters = dispatch.parameters,
                        .num_groups = dispatch.num_groups,
                        .num_threads = dispatch.num_threads,
                        .threadgroup_bytes = dispatch.threadgroup_bytes};
    for (const mlx::MetalOperand& operand : dispatch.buffers)
      launch.buffers.push_back(address(operand));
    device_->launch(launch);
    if (record_ != nullptr) record_->push_back(std::move(launch));
  }
  if (record_ != nullptr) kept_.insert(kept_.end(), scratch.begin(), scratch.end());
  return outputs;
}

Tensor CudaExec::allocate(DType, const Shape&) {
  PAGODA_CHECK(false, "[cuda] a result is allocated, where ops return what they build");
  return {};
}

Result<Tensor> CudaExec::allocate_persistent(DType dtype, const Shape& shape) {
  const std::size_t bytes = num_bytes(dtype, shape);
  const BufferRef buffer = new_buffer(bytes);
  device_->fill(static_cast<CudaBuffer&>(*buffer.get()).address(), bytes, std::byte{0});
  return Tensor(buffer, dtype, shape);
}

Tensor CudaExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  PAGODA_CHECK(
      bytes.size() == num_bytes(dtype, shape),
      fmt::format("[upload] expected {} bytes, got {}", num_bytes(dtype, shape), bytes.size()));
  Tensor result(BufferRef(new CudaBuffer(device_, bytes.size())), dtype, shape);
  device_->copy_in(address_of(result), bytes);
  return result;
}

Status CudaExec::evaluate(std::span<const Tensor>) {
  ++num_evaluations_;
  return ok_status();
}

Result<std::span<const std::byte>> CudaExec::read(const Tensor& tensor) {
  PAGODA_CHECK(tensor.is_contiguous(), "[cuda] a tensor is read that is not contiguous");
  CudaBuffer& buffer = buffer_of(tensor);
  buffer.read.resize(num_bytes(tensor.dtype(), tensor.shape()));
  device_->copy_out(buffer.read, address_of(tensor));
  return std::span<const std::byte>(buffer.read);
}

}  // namespace pagoda::metal_on_cuda

// Definitions that replace the mlx backend's.
namespace pagoda::mlx {

using metal_on_cuda::CudaExec;

const bool kBuilt = true;

bool has_gpu() {
  return false;
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions&) {
  return unsupported("[device] mlx: this is Metal on CUDA");
}

std::vector<Tensor> run(Exec& exec, MlxOp op) {
  const MlxOp built = std::move(op);
  return static_cast<CudaExec&>(exec).run(built);
}

bool uses_metal(const Exec&) {
  return true;
}

// Returns the Exec itself: nothing here is computed on the host.
Exec& host_exec(Exec& exec) {
  return exec;
}

SharedMemory whole_array(const Tensor& tensor) {
  return SharedMemory(metal_on_cuda::buffer_of(tensor).shared());
}

MatrixUnits matrix_units(const Exec& exec) {
  return static_cast<const CudaExec&>(exec).matrix_units();
}

}  // namespace pagoda::mlx
