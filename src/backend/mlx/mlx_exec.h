// MlxExec: MLX as a backend. Ops (mlx_op.h) build one lazy graph for the whole step; evaluate()
// runs it: by kernels of ours on the GPU where MLX has Metal, else by the cpu backend's bodies on
// the CPU.
//
// Threads. MLX gives every thread its own default stream of a device, and only the thread that made
// a stream may hand it work. So nothing here stores a stream. An op is recorded on the default
// stream of the thread that builds it. That thread has to evaluate it too; another one gets a
// Status that says so. Arrays that have their values already may come from any thread: the main
// thread may make weights, uploads and persistent memory before the engine thread takes over.
//
// Order. All work of a thread goes to one stream, which runs in order. A step's graph is therefore
// finished before the next step's begins, and evaluate() may be called for a step while earlier
// ones are still running. See mlx_op.h for what that means to memory that is written in place.
//
// Errors. MLX throws; we don't. Where graphs are run, exceptions are caught.
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

#include "backend/mlx/matrix_units.h"
#include "backend/mlx/metal_launch.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

namespace mx = ::mlx::core;

mx::Dtype to_mlx(DType dtype);
mx::Shape to_mlx(const Shape& shape);

// A tensor's memory here: an array, computed or not, laid out row by row. Tensors read it from
// their offset on, by their strides; to MLX it is one array, whatever tensors see in it.
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
// Gives an output of an op its memory, which begins at a cache line.
void set_aligned_data(mx::array& output);

// The cpu backend's Exec that ops run on where there is no Metal. One thread uses it at a time. The
// first is the one that loads the weights. The next is MLX's thread of the stream that the steps
// run on or, while that one waits, the one that hands the ops over.
struct HostBodies {
  explicit HostBodies(std::unique_ptr<Exec> cpu) : exec(std::move(cpu)) {}

  std::unique_ptr<Exec> exec;
  std::atomic<int> num_waiting = 0;  // ops that the stream's thread has not finished
};

class MlxExec : public Exec {
 public:
  // Makes an Exec whose ops run by the bodies of `host`; null: by our kernels, on a GPU whose matrix
  // units do as `units` says.
  explicit MlxExec(std::shared_ptr<HostBodies> host, MatrixUnits units = MatrixUnits::kUnusable)
      : Exec(Backend::kMlx), host_(std::move(host)), matrix_units_(units) {}

  bool uses_metal() const { return host_ == nullptr; }
  MatrixUnits matrix_units() const { return matrix_units_; }
  const std::shared_ptr<HostBodies>& host() const { return host_; }  // null where ops are kernels

  int num_threads() const override { return host_ ? host_->exec->num_threads() : 1; }
  bool is_asynchronous() const override { return true; }
  Tensor allocate(DType dtype,
                  const Shape& shape) override;  // never: ops here return what they build
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  // Returns memory that is the host's and the GPU's alike: what the host has written there is seen
  // by the work that is handed over after it.
  std::byte* host_address(const Tensor& persistent) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) override;
  Status evaluate(std::span<const Tensor> roots) override;
  // Reads a tensor; one that no evaluate() covered is evaluated here, which counts.
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  Status finish() override;

  Status prepare_kernels(const std::function<void()>& call_ops,
                         const std::function<void(double)>& progress) override;
  std::string arithmetic() const override;
  ExecCounters counters() const override;
  std::int64_t available_bytes() const override;
  std::string describe() const override;
  // Notes the kernels of a launch, where prepare_kernels() lists them.
  void list_kernels(const MetalLaunch& launch);

  // Adds an op's work to that of the graph, and returns whether the graph should be handed over now:
  // a command buffer that ran for long would be ended by macOS.
  bool is_due(const MetalLaunch& launch);
  // Hands over the graph so far, of which these are the last results. An error shows in the next
  // evaluate() or finish().
  void hand_over(const std::vector<mx::array>& results);

 private:
  // Returns what came of an exception. A command buffer that failed fails all that come after it, so
  // that a GPU is as good as gone.
  Status failed(std::string_view what, const std::exception& error) const;

  std::shared_ptr<HostBodies> host_;
  MatrixUnits matrix_units_;
  std::vector<MetalFunction>* listed_ = nullptr;  // while prepare_kernels() runs
  std::uint64_t num_late_before_ = 0;             // kernels of the process, until all were listed
  Status hand_over_error_;
  double graph_flops_ = 0;
  double graph_bytes_ = 0;
};

// Returns the Exec of an op's body: the dispatch has looked at its backend.
inline MlxExec& mlx_exec(Exec& exec) {
  return static_cast<MlxExec&>(exec);
}
inline const MlxExec& mlx_exec(const Exec& exec) {
  return static_cast<const MlxExec&>(exec);
}

}  // namespace pagoda::mlx
