// GpuOp: an op on a GPU, as its body describes it.
//
// It names its inputs, its outputs, and what computes them: dispatches of our kernels, or the cpu
// backend's body of the op if the Exec has no GPU (MLX on Linux). The Exec records it: mlx as one
// node of MLX's graph (backend/mlx/mlx_op.cc), cuda as launches. A view is no op: if an input is a
// slice, the kernel's buffer begins at its first element, and strides are parameters.
//
// An output may share an input's memory, as caches do that a step writes in place. Then the buffer
// is written where it is, and the op's result is the same memory with a new order: an op that reads
// the result reads what was written. The owner of the memory keeps the result alone, so that the
// next write comes after this one. Reads of earlier steps that are still running must touch other
// entries than the write; the owner of the blocks sees to it.
//
// Used only by the thread of its Exec; bodies on the host may run on another thread.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/gpu/gpu_launch.h"
#include "tensor/exec.h"

namespace pagoda::gpu {

inline constexpr int kFresh = -1;

struct OpOutput {
  DType dtype = DType::kFloat32;
  Shape shape;
  int memory_of = kFresh;  // index of the input whose memory it shares
};

// Computes an op on the host by the cpu backend's body, on its Exec. Returns a tensor per output.
// An output that shares an input's memory is written there, and the tensor returned for it is
// ignored. Data of the step that a body refers to, other than the inputs, must live as long as the
// body.
using HostBody = std::function<std::vector<Tensor>(Exec& host, std::span<const Tensor> inputs)>;

struct GpuOp {
  std::string_view name;       // a literal: "rms_norm"
  std::vector<Tensor> inputs;  // all defined; any strides. A kernel's buffer begins at the input's
                               // first element
  std::vector<OpOutput> outputs;  // fresh ones are contiguous
  GpuLaunch launch;               // empty unless the Exec uses kernels
  HostBody host;                  // null if the Exec uses kernels
};

// Records the op on a GpuExec and returns its outputs, which are computed later.
std::vector<Tensor> run(Exec& exec, GpuOp op);

// Returns whether ops of this GpuExec are kernels on a GPU; if not, they are bodies on the host.
bool uses_kernels(const Exec& exec);
// Returns the Exec of the cpu backend that bodies run on. REQUIRES: !uses_kernels(exec).
Exec& host_exec(const Exec& exec);

// Returns how many groups of `size` cover `count`.
constexpr int num_groups_of(std::int64_t count, std::int64_t size) {
  return static_cast<int>((count + size - 1) / size);
}

}  // namespace pagoda::gpu
