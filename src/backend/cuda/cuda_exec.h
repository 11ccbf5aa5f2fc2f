// CudaExec: an NVIDIA GPU as a backend. Ops record launches of our kernels and copies of what the
// host uploads; evaluate() gives all of them to one stream, in order, and does not wait. Results are
// read by a second stream, which waits for the evaluation that computes them and for nothing behind
// it.
//
// One thread at a time uses it: the one that loads the model, then the engine's. Errors of the
// device are kUnavailable, after which an engine ends.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/device_memory.h"
#include "backend/cuda/graph_cache.h"
#include "backend/cuda/kernel_library.h"
#include "backend/cuda/launch_list.h"
#include "backend/cuda/staging.h"
#include "backend/gpu/gpu_exec.h"

namespace pagoda::cuda {

class CudaExec final : public gpu::GpuExec {
 public:
  // Makes an Exec on an open device. `kernel_folder` keeps binaries; empty: they are not kept.
  // PAGODA_CUDA_GRAPHS=off in the environment has every kernel launched by itself.
  static Result<std::unique_ptr<CudaExec>> create(std::shared_ptr<Device> device,
                                                  std::shared_ptr<Compiler> compiler,
                                                  std::filesystem::path kernel_folder);
  ~CudaExec() override;

  std::vector<Tensor> run(gpu::GpuOp op) override;
  // Returns the arithmetic of shim/metal_simdgroup_matrix: chains of fma.
  gpu::MatrixUnits matrix_units() const override { return gpu::MatrixUnits::kAscendingChain; }
  Status fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
              const std::function<void(std::uint32_t* values)>& write) override;

  bool is_asynchronous() const override { return true; }
  std::string arithmetic() const override;
  std::string describe() const override;
  ExecCounters counters() const override;
  std::uint64_t num_graph_launches() const { return graphs_ ? graphs_->num_graph_launches() : 0; }
  std::int64_t available_bytes() const override;

  Tensor allocate(DType dtype, const Shape& shape) override;  // never called
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) override;
  bool writes_in_place() const override { return true; }
  using Exec::write;
  void write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes) override;
  Status evaluate(std::span<const Tensor> roots) override;
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;
  Status read_packet(std::span<const Tensor> tensors,
                     std::span<std::span<const std::byte>> values) override;
  Status finish() override;
  Status prepare_kernels(const std::function<void()>& call_ops,
                         const std::function<void(double)>& progress) override;

 private:
  struct CopyOut {
    Tensor tensor;
    const std::byte* staged;  // the device may still write there after a failure
  };
  struct Evaluation {
    std::uint64_t number;
    CuEvent* done;
  };

  CudaExec(std::shared_ptr<Device> device, std::shared_ptr<Compiler> compiler,
           std::filesystem::path kernel_folder);
  Status make_streams();

  // Returns memory for a result of the evaluation that is being recorded. If the GPU lacks it, the
  // evaluation fails.
  BufferRef new_result(std::size_t bytes);
  void record(const gpu::GpuDispatch& dispatch, std::span<const Address> buffers);
  // Records a copy to the buffer's bytes from `begin` on, and returns the memory that is copied: the
  // caller writes it before the evaluation.
  Result<std::byte*> stage(const BufferRef& to, std::size_t begin, std::size_t bytes);
  // Does the same. Returns null if there is nothing to copy, while kernels are listed, and if memory
  // lacks, which fails the evaluation.
  std::byte* stage_or_fail(const BufferRef& to, std::size_t begin, std::size_t bytes);
  void list_kernels(const gpu::GpuLaunch& launch);
  void keep(const BufferRef& memory);
  void fail(const Status& status);
  void drop_recorded();
  Status submit();
  // Waits until an evaluation is done.
  Status wait_for(std::uint64_t evaluation);
  // Waits for what computes the tensor, and starts a copy of its values to the host.
  Status start_read(const Tensor& tensor);
  // Waits for the copies, and keeps them beside the tensors' memory.
  Status finish_reads();

  std::shared_ptr<Device> device_;
  std::shared_ptr<Compiler> compiler_;
  KernelLibrary kernels_;
  std::shared_ptr<DeviceArena> arena_;
  Staging staging_;
  std::unique_ptr<GraphCache> graphs_;  // null: every list is launched kernel by kernel
  CuStream* stream_ = nullptr;
  CuStream* read_stream_ = nullptr;

  // Work that has been recorded and not been submitted.
  LaunchList recorded_;
  std::vector<BufferRef> kept_;  // persistent memory that it uses
  Status error_;                 // of recording

  std::vector<CopyOut> reads_;  // that were started
  std::deque<Evaluation> in_flight_;
  std::vector<CuEvent*> free_events_;
  std::uint64_t num_done_ = 0;                  // evaluations that are known to be done
  std::vector<KernelShape>* listed_ = nullptr;  // not null while prepare_kernels() lists
  std::uint64_t num_late_before_ = 0;
};

}  // namespace pagoda::cuda
