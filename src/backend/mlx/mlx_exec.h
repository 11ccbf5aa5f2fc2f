// MlxExec: MLX as a backend. Ops (mlx_op.cc) build one lazy graph for the whole step, which
// evaluate() runs. If MLX has Metal, our kernels run on the GPU, else the cpu backend's bodies on
// the CPU.
//
// Threads. MLX gives every thread its own default stream of a device, and only the thread that made
// a stream may give it work. So nothing here stores a stream. An op is recorded on the default
// stream of the thread that builds it. The same thread must evaluate the op; in other threads
// evaluate() returns an error Status. Arrays that already have values may come from any thread: the
// main thread may make weights, uploads and persistent memory before the engine thread takes over.
//
// Order. All work of a thread goes to one stream, which runs in order. A step's graph is therefore
// finished before the next step's begins, and evaluate() may be called for a step while earlier
// steps are still running. See mlx_op.cc for what this means for memory that is written in place.
//
// Errors. MLX throws; Pagoda does not. Exceptions are caught where graphs are run.
#pragma once

#include <mlx/array.h>
#include <mlx/stream.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/gpu/gpu_exec.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

namespace mx = ::mlx::core;

mx::Dtype to_mlx(DType dtype);
mx::Shape to_mlx(const Shape& shape);

// The memory of tensors: an MLX array in row-major order, which may not be computed yet. Several
// tensors may view it by offsets and strides of their own; to MLX it is always this one array.
class MlxBuffer final : public Buffer {
 public:
  explicit MlxBuffer(mx::array values)
      : Buffer(MemorySpace::kDevice, nullptr, values.nbytes()), array(std::move(values)) {}

  mx::array array;

 private:
  void release() override { delete this; }
};

Tensor tensor_of(mx::array array, DType dtype, const Shape& shape);
// Returns the array that the tensor is a view of.
mx::array& whole_array(const Tensor& tensor);
// Gives an op's output memory that begins at a cache line.
void set_aligned_data(mx::array& output);

// The cpu backend's Exec that runs the ops if there is no Metal. One thread uses it at a time:
// first the thread that loads the weights, then MLX's thread of the stream on which steps run.
// While the stream's thread waits, the thread that gives it the ops may use the Exec.
struct HostBodies {
  explicit HostBodies(std::unique_ptr<Exec> cpu) : exec(std::move(cpu)) {}

  std::unique_ptr<Exec> exec;
  std::atomic<int> num_waiting = 0;  // ops that the stream's thread has not finished
};

class MlxExec : public gpu::GpuExec {
 public:
  // Makes an Exec whose ops run as bodies on `host`. If `host` is null, they run as our kernels, on
  // a GPU with matrix units of the kind `units`.
  explicit MlxExec(std::shared_ptr<HostBodies> host,
                   gpu::MatrixUnits units = gpu::MatrixUnits::kUnusable)
      : GpuExec(Backend::kMlx), host_(std::move(host)), matrix_units_(units) {}

  bool uses_kernels() const { return host_ == nullptr; }

  std::vector<Tensor> run(gpu::GpuOp op) override;
  Exec* host_exec() const override { return host_ ? host_->exec.get() : nullptr; }
  gpu::MatrixUnits matrix_units() const override { return matrix_units_; }
  Status fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
              const std::function<void(std::uint32_t* values)>& write) override;

  int num_threads() const override { return host_ ? host_->exec->num_threads() : 1; }
  bool is_asynchronous() const override { return true; }
  Tensor allocate(DType dtype,
                  const Shape& shape) override;  // never called: ops return what they build
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  // Returns the tensor's memory, which host and GPU share. Work that is given to the GPU after a
  // write of the host sees that write.
  std::byte* host_address(const Tensor& persistent) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) override;
  Status evaluate(std::span<const Tensor> roots) override;
  // Reads a tensor. If no evaluate() covered it, it is evaluated here, and counted as an
  // evaluation.
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  Status finish() override;

  Status prepare_kernels(const std::function<void()>& call_ops,
                         const std::function<void(double)>& progress) override;
  std::string arithmetic() const override;
  ExecCounters counters() const override;
  std::int64_t available_bytes() const override;
  std::string describe() const override;
  // Adds the kernels of a launch to the list that prepare_kernels() collects, if it is running.
  void list_kernels(const gpu::GpuLaunch& launch);

  // Adds an op's work to the graph's, and returns whether the graph should be given to MLX now:
  // macOS ends command buffers that run too long.
  bool is_due(const gpu::GpuLaunch& launch);
  // Gives MLX the graph built so far, up to `results`. The next evaluate() or finish() returns its
  // errors.
  void hand_over(const std::vector<mx::array>& results);

 private:
  // Converts an exception to a Status: kUnavailable on a GPU, because all command buffers after a
  // failed one fail, too.
  Status failed(std::string_view what, const std::exception& error) const;

  std::shared_ptr<HostBodies> host_;
  gpu::MatrixUnits matrix_units_;
  std::vector<gpu::GpuFunction>* listed_ = nullptr;  // not null while prepare_kernels() lists
  std::uint64_t num_late_before_ = 0;  // the process's late kernels when prepare_kernels() ended
  Status hand_over_error_;
  double graph_flops_ = 0;
  double graph_bytes_ = 0;
};

}  // namespace pagoda::mlx
