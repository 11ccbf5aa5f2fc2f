// MlxExec: MLX as a backend. Ops build one lazy graph for the whole step; evaluate() runs it, on
// the GPU through Metal where there is one, else on the CPU.
//
// Threads. MLX gives every thread its own default stream of a device, and only the thread that made
// a stream may hand it work. So nothing here stores a stream: an op is recorded on the default
// stream of the thread that builds it, and that thread has to evaluate it too (another one gets a
// Status that says so). What has its values already may come from anywhere: weights, uploads and
// persistent memory may be made by the main thread before the engine thread takes over.
//
// Order. All work of a thread goes to one stream, which runs in order. A step's graph is therefore
// finished before the next step's begins, and evaluate() may be called for a step while earlier
// ones are still running. See ops/kv_write for what that means to memory that is written in place.
//
// Errors. MLX throws; we don't. Where an op is built (build()) and where graphs are run, exceptions
// are caught. An op that can't be built hands out zeros and leaves its Status to the next
// evaluate() or read().
#pragma once

#include <mlx/array.h>
#include <mlx/device.h>

#include <array>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/exec.h"

namespace pagoda::mlx {

namespace mx = ::mlx::core;

mx::Dtype to_mlx(DType dtype);
mx::Shape to_mlx(const Shape& shape);

// A tensor's memory here: an array, computed or not, that the tensor's views read through reshapes
// and slices.
class MlxBuffer final : public Buffer {
 public:
  explicit MlxBuffer(mx::array values)
      : Buffer(MemorySpace::kDevice, nullptr, values.nbytes()), array(std::move(values)) {}

  mx::array array;

 private:
  void release() override { delete this; }
};

// Returns the tensor's elements as an array of the tensor's shape. Lazy: it costs a node of the
// graph, and a copy only where a view is of an array that MLX has not laid out row by row.
mx::array array_of(const Tensor& tensor);

class MlxExec final : public Exec {
 public:
  MlxExec();
  // Makes an Exec whose ops run our kernels for Apple GPUs where `uses_metal_kernels`; by default
  // they do where such a GPU is the default device.
  explicit MlxExec(bool uses_metal_kernels)
      : Exec(Backend::kMlx), uses_metal_kernels_(uses_metal_kernels) {}

  bool uses_metal_kernels() const { return uses_metal_kernels_; }

  bool is_asynchronous() const override { return true; }
  Tensor allocate(DType dtype,
                  const Shape& shape) override;  // never: ops here return what they build
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  Status evaluate(std::span<const Tensor> roots) override;
  // Reads a tensor; one that no evaluate() covered is evaluated here, which counts.
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  Status finish() override;

  // Returns the array that `body` returns, as a tensor. `op` names it in errors: "rms_norm".
  template <typename Body>
  Tensor build(std::string_view op, DType dtype, const Shape& shape, Body&& body) {
    try {
      return wrap(op, dtype, shape, std::forward<Body>(body)());
    } catch (const std::exception& error) {
      return failed(op, dtype, shape, error.what());
    }
  }

  // Returns an array that all layers of a step share (a mask, the cosines of its positions). `make`
  // builds it, once between two evaluations. It is a function of `sources` and `variant` alone.
  using Variant = std::array<std::int64_t, 4>;
  template <typename Make>
  mx::array once_a_step(std::vector<Tensor> sources, const Variant& variant, Make&& make) {
    if (const mx::array* made = find_shared(sources, variant)) return *made;
    shared_.push_back({std::move(sources), variant, std::forward<Make>(make)()});
    return shared_.back().value;
  }

 private:
  struct SharedArray {
    std::vector<Tensor> sources;  // held, so that no other buffer gets their address
    Variant variant;
    mx::array value;
  };

  const mx::array* find_shared(const std::vector<Tensor>& sources, const Variant& variant) const;
  Tensor wrap(std::string_view op, DType dtype, const Shape& shape, mx::array array);
  // Keeps the first error of a step, which is the cause of the others.
  Tensor failed(std::string_view op, DType dtype, const Shape& shape, std::string_view message);

  bool uses_metal_kernels_;
  Status build_error_;
  std::vector<SharedArray> shared_;
};

// Returns the Exec of an op's body: the dispatch has looked at its backend.
inline MlxExec& mlx_exec(Exec& exec) {
  return static_cast<MlxExec&>(exec);
}

}  // namespace pagoda::mlx
