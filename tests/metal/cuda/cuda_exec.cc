#include "tests/metal/cuda/cuda_exec.h"

#include <fmt/format.h>

#include <utility>

#include "backend/backend.h"
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

  Address address() const { return address_; }

  std::vector<std::byte> read;  // the host's copy for read()

 private:
  void release() override { delete this; }

  std::shared_ptr<Device> device_;
  Address address_;
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

std::vector<Tensor> CudaExec::run(gpu::GpuOp op) {
  std::vector<Tensor> outputs;
  for (const gpu::OpOutput& output : op.outputs) {
    if (output.memory_of == gpu::kFresh) {
      outputs.emplace_back(new_buffer(num_bytes(output.dtype, output.shape)), output.dtype,
                           output.shape);
    } else {
      const Tensor& input = op.inputs[static_cast<std::size_t>(output.memory_of)];
      outputs.emplace_back(input.buffer(), output.dtype, output.shape, input.offset());
    }
  }
  std::vector<BufferRef> scratch;
  for (const std::size_t bytes : op.launch.scratch_bytes) scratch.push_back(new_buffer(bytes));
  const auto address = [&](const gpu::GpuOperand& operand) {
    const auto i = static_cast<std::size_t>(operand.index);
    switch (operand.kind) {
      case gpu::GpuOperand::Kind::kInput:
        return address_of(op.inputs.at(i));
      case gpu::GpuOperand::Kind::kOutput:
        return address_of(outputs.at(i));
      case gpu::GpuOperand::Kind::kScratch:
        break;
    }
    return static_cast<CudaBuffer&>(*scratch.at(i).get()).address();
  };
  for (const gpu::GpuDispatch& dispatch : op.launch.dispatches) {
    KernelLaunch launch{.function = dispatch.function,
                        .buffers = {},
                        .parameters = dispatch.parameters,
                        .num_groups = dispatch.num_groups,
                        .num_threads = dispatch.num_threads,
                        .threadgroup_bytes = dispatch.threadgroup_bytes};
    for (const gpu::GpuOperand& operand : dispatch.buffers)
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

Status CudaExec::fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
                      const std::function<void(std::uint32_t* values)>& write) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  write(values.data());
  const auto begin = static_cast<Address>(first) * sizeof(std::uint32_t);
  device_->copy_in(address_of(persistent) + begin, std::as_bytes(std::span(values)));
  return ok_status();
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
