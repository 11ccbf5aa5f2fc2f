#include "backend/mlx/mlx_exec.h"

#include <mlx/memory.h>
#include <mlx/ops.h>
#include <mlx/stream.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "tensor/num_bytes.h"

namespace pagoda::mlx {
namespace {

MlxBuffer& buffer_of(const Tensor& tensor) {
  return static_cast<MlxBuffer&>(*tensor.buffer().get());
}

Tensor tensor_of(mx::array array, DType dtype, const Shape& shape) {
  return Tensor(BufferRef(new MlxBuffer(std::move(array))), dtype, shape);
}

// True if every row (all extents but the first) is contiguous; sets `width` to its elements.
bool rows_are_contiguous(const Tensor& tensor, std::int64_t& width) {
  width = 1;
  for (int i = tensor.shape().rank() - 1; i > 0; --i) {
    if (tensor.extent(i) != 1 && tensor.stride(i) != width) return false;
    width *= tensor.extent(i);
  }
  return true;
}

// `tensor` as a rectangle of the array seen as rows of the tensor's outermost stride, if it is one:
// a slice of a joined product's columns, or of an activation's rows.
bool slice_rectangle(const Tensor& tensor, const mx::array& base, mx::array& result) {
  std::int64_t width = 0;
  if (tensor.shape().rank() == 0 || !rows_are_contiguous(tensor, width)) return false;
  const std::int64_t pitch = tensor.stride(0);
  const auto size = static_cast<std::int64_t>(base.size());
  if (pitch <= 0 || size % pitch != 0) return false;
  const std::int64_t row = tensor.offset() / pitch;
  const std::int64_t column = tensor.offset() % pitch;
  if (column + width > pitch || row + tensor.extent(0) > size / pitch) return false;
  const auto dim = [](std::int64_t extent) { return static_cast<mx::ShapeElem>(extent); };
  result = mx::reshape(base, {dim(size / pitch), dim(pitch)});
  result = mx::slice(result, {dim(row), dim(column)},
                     {dim(row + tensor.extent(0)), dim(column + width)});
  result = mx::reshape(result, to_mlx(tensor.shape()));
  return true;
}

Status failure(std::string_view what, const std::exception& error) {
  return internal_error("[mlx] {}: {}", what, error.what());
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

mx::array array_of(const Tensor& tensor) {
  const mx::array& base = buffer_of(tensor).array;
  const mx::Shape shape = to_mlx(tensor.shape());
  const bool contiguous = tensor.is_contiguous();
  if (contiguous && tensor.num_elements() == static_cast<std::int64_t>(base.size())) {
    return base.shape() == shape ? base : mx::reshape(base, shape);
  }
  mx::array result = base;
  if (slice_rectangle(tensor, base, result)) return result;
  mx::Strides strides;
  for (int i = 0; i < tensor.shape().rank(); ++i) strides.push_back(tensor.stride(i));
  return mx::as_strided(base, shape, strides, static_cast<std::size_t>(tensor.offset()));
}

MlxExec::MlxExec() : MlxExec(mx::default_device() == mx::Device(mx::Device::gpu)) {}

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
    mx::allocator::Buffer memory = mx::allocator::allocator().malloc(size);
    if (memory.ptr() == nullptr && size > 0) return exhausted("out of memory");
    // With a deleter of its own the memory is never MLX's to reuse for an op's result.
    mx::array array(
        mx::allocator::Data(memory,
                            [](mx::allocator::Buffer b) { mx::allocator::allocator().free(b); }),
        to_mlx(shape), to_mlx(dtype));
    if (size > 0) std::memset(array.data<char>(), 0, size);
    return tensor_of(std::move(array), dtype, shape);
  } catch (const std::exception& error) {
    return exhausted(error.what());
  }
}

Tensor MlxExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  PAGODA_CHECK(bytes.size() == num_bytes(dtype, shape),
               fmt::format("[upload] expected {} bytes for {}, got {}", num_bytes(dtype, shape),
                           to_string(shape), bytes.size()));
  return build("upload", dtype, shape, [&] {
    mx::array array(mx::allocator::malloc(bytes.size()), to_mlx(shape), to_mlx(dtype));
    if (!bytes.empty()) std::memcpy(array.data<char>(), bytes.data(), bytes.size());
    return array;
  });
}

Status MlxExec::evaluate(std::span<const Tensor> roots) {
  shared_.clear();
  if (!build_error_.ok()) return std::exchange(build_error_, Status());
  std::vector<mx::array> arrays;
  arrays.reserve(roots.size());
  for (const Tensor& root : roots) {
    const mx::array& array = buffer_of(root).array;
    if (array.status() == mx::array::Status::unscheduled) arrays.push_back(array);
  }
  if (arrays.empty()) return ok_status();
  ++num_evaluations_;
  try {
    mx::async_eval(std::move(arrays));
  } catch (const std::exception& error) {
    return failure("evaluating a step", error);
  }
  return ok_status();
}

Result<std::span<const std::byte>> MlxExec::read(const Tensor& tensor) {
  PAGODA_CHECK(tensor.is_contiguous(), "[read] expected a contiguous tensor");
  if (!build_error_.ok()) return std::exchange(build_error_, Status());
  mx::array& array = buffer_of(tensor).array;
  try {
    if (array.status() == mx::array::Status::unscheduled) {
      shared_.clear();
      ++num_evaluations_;
    }
    array.eval();
    if (!array.flags().row_contiguous) {
      array = mx::contiguous(array);
      ++num_evaluations_;
      array.eval();
    }
  } catch (const std::exception& error) {
    return failure("reading a tensor", error);
  }
  const std::size_t size = dtype_size(tensor.dtype());
  const auto* first =
      reinterpret_cast<const std::byte*>(array.data<char>()) + tensor.offset() * size;
  return std::span<const std::byte>(first, tensor.num_elements() * size);
}

Status MlxExec::finish() {
  shared_.clear();
  Status status = std::exchange(build_error_, Status());
  try {
    mx::synchronize();
  } catch (const std::exception& error) {
    return failure("waiting for what runs", error);
  }
  return status;
}

const mx::array* MlxExec::find_shared(const std::vector<Tensor>& sources,
                                      const Variant& variant) const {
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.buffer().get() == b.buffer().get() && a.offset() == b.offset() &&
           a.shape() == b.shape();
  };
  for (const SharedArray& shared : shared_) {
    if (shared.variant == variant && std::ranges::equal(shared.sources, sources, same))
      return &shared.value;
  }
  return nullptr;
}

Tensor MlxExec::wrap(std::string_view op, DType dtype, const Shape& shape, mx::array array) {
  if (array.shape() != to_mlx(shape) || array.dtype() != to_mlx(dtype)) {
    return failed(
        op, dtype, shape,
        fmt::format("expected {} of {}, got another array", to_string(shape), dtype_name(dtype)));
  }
  return tensor_of(std::move(array), dtype, shape);
}

Tensor MlxExec::failed(std::string_view op, DType dtype, const Shape& shape,
                       std::string_view message) {
  if (build_error_.ok()) build_error_ = internal_error("[mlx] {}: {}", op, message);
  return tensor_of(mx::zeros(to_mlx(shape), to_mlx(dtype)), dtype, shape);
}

extern const bool kBuilt = true;

bool has_gpu() {
  return mx::default_device() == mx::Device(mx::Device::gpu);
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options) {
  try {
    // Touching the device finds out whether the machine has what the library was built for.
    if (!mx::is_available(mx::default_device())) return unavailable("[device] mlx: no device");
    return std::unique_ptr<Exec>(std::make_unique<MlxExec>());
  } catch (const std::exception& error) {
    return unavailable("[device] mlx: {}", error.what());
  }
}

}  // namespace pagoda::mlx
