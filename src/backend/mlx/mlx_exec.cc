#include "backend/mlx/mlx_exec.h"

#include <mlx/memory.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/mlx/gpu_limits.h"
#include "backend/mlx/metal_dispatch.h"
#include "tensor/num_bytes.h"

namespace pagoda::mlx {
namespace {

using gpu::GpuDispatch;
using gpu::GpuFunction;
using gpu::GpuLaunch;

constexpr std::size_t kLine = 64;  // bytes; the cpu backend's bodies read whole lines

// The work that takes 0.1 s on an M1 (68 GB/s, 2.6 TFLOP/s) if a kernel reaches half of its peaks.
// A command buffer may run up to 0.3 s.
constexpr double kMostFlops = 1.3e11;
constexpr double kMostBytes = 3.4e9;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Gives `array` its memory, which is two lines longer than the array. The array begins at a line.
void set_lines(mx::array& array, mx::allocator::Data memory) {
  if (memory.buffer().ptr() == nullptr) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(memory.buffer().raw_ptr());
  const auto begin = static_cast<std::int64_t>(round_up(address) - address);
  mx::array::Flags flags;
  flags.contiguous = true;
  flags.row_contiguous = true;
  flags.col_contiguous = array.ndim() <= 1;
  array.set_data(std::move(memory), array.size(), array.strides(), flags, begin);
}

// Returns an uninitialised array of whole lines.
mx::array lines_of(std::size_t bytes) {
  mx::array array({static_cast<mx::ShapeElem>(bytes / sizeof(std::int32_t))}, mx::int32, nullptr,
                  {});
  set_lines(array, mx::allocator::malloc(bytes + 2 * kLine));
  array.set_status(mx::array::Status::available);
  return array;
}

}  // namespace

mx::Dtype to_mlx(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return mx::float32;
    case DType::kBFloat16:
      return mx::bfloat16;
    case DType::kFloat16:
      return mx::float16;
    case DType::kInt32:
      return mx::int32;
    case DType::kInt8:
      return mx::int8;
    case DType::kUInt8:
      return mx::uint8;
  }
  return mx::float32;
}

mx::Shape to_mlx(const Shape& shape) {
  mx::Shape result;
  for (const std::int64_t extent : shape.extents()) {
    PAGODA_CHECK(extent <= std::numeric_limits<mx::ShapeElem>::max(),
                 fmt::format("[mlx] expected extents of 32 bits, got {}", to_string(shape)));
    result.push_back(static_cast<mx::ShapeElem>(extent));
  }
  return result;
}

Tensor tensor_of(mx::array array, DType dtype, const Shape& shape) {
  return Tensor(BufferRef(new MlxBuffer(std::move(array))), dtype, shape);
}

mx::array& whole_array(const Tensor& tensor) {
  return static_cast<MlxBuffer&>(*tensor.buffer().get()).array;
}

void set_aligned_data(mx::array& output) {
  set_lines(output, mx::allocator::malloc(output.nbytes() + 2 * kLine));
}

Tensor MlxExec::allocate(DType dtype, const Shape& shape) {
  PAGODA_CHECK(false, "[mlx] expected ops to return what they build, got a call of allocate");
}

Result<Tensor> MlxExec::allocate_persistent(DType dtype, const Shape& shape) {
  const std::size_t size = num_bytes(dtype, shape);
  const auto exhausted = [&](std::string_view why) {
    return resource_exhausted("[mlx] {} of {} ({} bytes): {}", to_string(shape), dtype_name(dtype),
                              size, why);
  };
  try {
    if (size > mx::get_memory_limit() - std::min(mx::get_memory_limit(), mx::get_active_memory())) {
      return exhausted("over MLX's memory limit");
    }
    mx::array array(to_mlx(shape), to_mlx(dtype), nullptr, {});
    // MLX never reuses memory that has a custom deleter for an op's result.
    set_lines(array, mx::allocator::Data(mx::allocator::allocator().malloc(size + 2 * kLine),
                                         [](mx::allocator::Buffer memory) {
                                           mx::allocator::allocator().free(memory);
                                         }));
    array.set_status(mx::array::Status::available);
    if (size > 0) std::memset(array.data<char>(), 0, size);
    return tensor_of(std::move(array), dtype, shape);
  } catch (const std::exception& error) {
    return exhausted(error.what());
  }
}

std::byte* MlxExec::host_address(const Tensor& persistent) {
  return reinterpret_cast<std::byte*>(whole_array(persistent).data<char>());
}

// Lets `write` write where the values stay: persistent memory begins as zeros.
Status MlxExec::fill(const Tensor& persistent, std::int64_t first, std::int64_t /*count*/,
                     const std::function<void(std::uint32_t* values)>& write) {
  write(whole_array(persistent).data<std::uint32_t>() + persistent.offset() + first);
  return ok_status();
}

Tensor MlxExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  const HostArray array = {dtype, shape, bytes};
  Tensor tensor;
  upload_packet({&array, 1}, {&tensor, 1});
  return tensor;
}

// Uploads all arrays as one MLX array, in which each begins at a line of its own.
void MlxExec::upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) {
  std::size_t total = kLine;
  for (const HostArray& array : arrays) total += round_up(array.bytes.size());
  mx::array packet = lines_of(total);
  auto* const bytes = packet.data<char>();
  const BufferRef buffer(new MlxBuffer(std::move(packet)));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const HostArray& array = arrays[i];
    PAGODA_CHECK(array.bytes.size() == num_bytes(array.dtype, array.shape),
                 fmt::format("[upload] expected {} bytes for {}, got {}",
                             num_bytes(array.dtype, array.shape), to_string(array.shape),
                             array.bytes.size()));
    if (!array.bytes.empty()) std::memcpy(bytes + begin, array.bytes.data(), array.bytes.size());
    tensors[i] = Tensor(buffer, array.dtype, array.shape,
                        static_cast<std::int64_t>(begin / dtype_size(array.dtype)));
    begin += round_up(array.bytes.size());
  }
}

Status MlxExec::evaluate(std::span<const Tensor> roots) {
  graph_flops_ = 0;
  graph_bytes_ = 0;
  if (!hand_over_error_.ok()) return std::exchange(hand_over_error_, Status());
  std::vector<mx::array> arrays;
  arrays.reserve(roots.size());
  for (const Tensor& root : roots) {
    const mx::array& array = whole_array(root);
    if (array.status() == mx::array::Status::unscheduled) arrays.push_back(array);
  }
  if (arrays.empty()) return ok_status();
  ++num_evaluations_;
  try {
    mx::async_eval(std::move(arrays));
  } catch (const std::exception& error) {
    return failed("evaluating a step", error);
  }
  return ok_status();
}

Result<std::span<const std::byte>> MlxExec::read(const Tensor& tensor) {
  PAGODA_CHECK(tensor.is_contiguous(), "[read] expected a contiguous tensor");
  mx::array& array = whole_array(tensor);
  if (array.status() == mx::array::Status::unscheduled)
    PAGODA_RETURN_IF_ERROR(evaluate({&tensor, 1}));
  try {
    array.eval();
  } catch (const std::exception& error) {
    return failed("reading a tensor", error);
  }
  const std::size_t size = dtype_size(tensor.dtype());
  const auto* first =
      reinterpret_cast<const std::byte*>(array.data<char>()) + tensor.offset() * size;
  return std::span<const std::byte>(first, tensor.num_elements() * size);
}

Status MlxExec::finish() {
  Status status = std::exchange(hand_over_error_, Status());
  try {
    mx::synchronize();
  } catch (const std::exception& error) {
    return failed("waiting for what runs", error);
  }
  return status;
}

// Lists the kernels of the ops that `call_ops` builds, and compiles them. The ops are never
// evaluated.
Status MlxExec::prepare_kernels(const std::function<void()>& call_ops,
                                const std::function<void(double)>& progress) {
  if (!uses_kernels()) return ok_status();
  std::vector<GpuFunction> functions;
  listed_ = &functions;
  call_ops();
  listed_ = nullptr;
  try {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      build_pipeline(functions[i]);
      if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(functions.size()));
    }
  } catch (const std::exception& error) {
    return failed("building kernels", error);
  }
  num_late_before_ = num_late_pipelines();
  return ok_status();
}

void MlxExec::list_kernels(const GpuLaunch& launch) {
  if (listed_ == nullptr) return;
  for (const GpuDispatch& dispatch : launch.dispatches) {
    const std::string name = dispatch.function.binary_name();
    if (std::none_of(listed_->begin(), listed_->end(),
                     [&](const GpuFunction& function) { return function.binary_name() == name; })) {
      listed_->push_back(dispatch.function);
    }
  }
}

ExecCounters MlxExec::counters() const {
  ExecCounters counters = uses_kernels() ? ExecCounters{} : host_->exec->counters();
  counters.num_evaluations = num_evaluations_;
  if (uses_kernels()) counters.num_late_kernels = num_late_pipelines() - num_late_before_;
  return counters;
}

std::int64_t MlxExec::available_bytes() const {
  return uses_kernels() ? available_gpu_bytes() : Exec::available_bytes();
}

std::string MlxExec::arithmetic() const {
  const std::string how = uses_kernels() ? describe() : host_->exec->arithmetic();
  return fmt::format("{} by {}", backend_name(backend()), how);
}

std::string MlxExec::describe() const {
  if (!uses_kernels()) return "no Metal here: ops run by the cpu backend";
  return fmt::format("{}; {}", describe_gpu(), to_string(matrix_units_));
}

Status MlxExec::failed(std::string_view what, const std::exception& error) const {
  const std::string message = fmt::format("[mlx] {}: {}", what, error.what());
  return {uses_kernels() ? StatusCode::kUnavailable : StatusCode::kInternal, message};
}

void MlxExec::hand_over(const std::vector<mx::array>& results) {
  try {
    mx::async_eval(results);
  } catch (const std::exception& error) {
    hand_over_error_ = failed("handing over a part of a step", error);
  }
}

bool MlxExec::is_due(const GpuLaunch& launch) {
  if (listed_ != nullptr) return false;
  graph_flops_ += launch.flops;
  graph_bytes_ += launch.bytes;
  if (graph_flops_ < kMostFlops && graph_bytes_ < kMostBytes) return false;
  graph_flops_ = 0;
  graph_bytes_ = 0;
  return true;
}

}  // namespace pagoda::mlx
