// MlxOp: the one primitive that every op of the mlx backend is.
//
// An op names its inputs, its outputs, and what computes them: dispatches of our kernels where MLX
// runs on Metal, else the cpu backend's body of the op on the host. MLX sees one node of its graph
// an op, whatever the op does, and none for views: an input that is a slice of an array goes to the
// kernel as that array, an offset, and strides among the parameters.
//
// Outputs that share an input's memory. MLX's arrays are values: an update is a copy, or at best a
// donated buffer. An output may share an input's buffer instead, so that a cache stays where it is,
// whatever the step, and costs its tokens alone. No reader sees the old array change, because:
// - A write comes before the reads of its step: attention reads the returned array, which is the
//   graph's edge from the write. The store keeps only the returned array (rebind), so that the next
//   write hangs on this one, too.
// - Reads of an earlier step come before this write. A step is evaluated as a whole before the next
//   one is: MLX orders a graph by its edges alone, so two steps must not be built and then
//   evaluated at once. On a CPU stream work runs in the order in which it was handed over, which
//   is enough, with any number of steps in flight. On Metal a kernel is kept behind earlier ones of
//   its own command encoder that read the buffer, and behind encoders that wrote it, but not behind
//   earlier encoders that only read it. There it is the owner of the blocks that makes it right: an
//   entry is written once, and a block changes hands only after the host has seen the end of the
//   last step that it waits for, so that a write in flight and an older read in flight never touch
//   the same entry.
// - The memory is never lent to another result: MlxExec::allocate_persistent gives it a deleter of
//   its own, and MLX donates only buffers without one.
//
// Belongs to the thread of its Exec; on the host, bodies run on MLX's thread of the stream.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/mlx/metal_launch.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

inline constexpr int kFresh = -1;

struct OpOutput {
  DType dtype = DType::kFloat32;
  Shape shape;
  int memory_of = kFresh;  // the input whose memory it is
};

// Computes an op on the host: by the cpu backend's body, on its Exec. Returns a tensor an output;
// one that shares an input's memory has been written there, and what stands for it is not looked at.
// Whatever a body holds of the step besides the inputs must live as long as itself.
using HostBody = std::function<std::vector<Tensor>(Exec& host, std::span<const Tensor> inputs)>;

struct MlxOp {
  std::string_view name;       // a literal: "rms_norm"
  std::vector<Tensor> inputs;  // all defined; any strides. Buffers of an input begin at its first
                               // element
  std::vector<OpOutput> outputs;  // fresh ones are contiguous
  MetalLaunch launch;             // where the Exec uses Metal, else empty
  HostBody host;                  // elsewhere, else null
};

// Records the op; lazy, as all of MLX. Returns its outputs.
std::vector<Tensor> run(Exec& exec, MlxOp op);

// Returns whether ops of this Exec are kernels of ours on Metal, or bodies on the host.
bool uses_metal(const Exec& exec);
// Returns the Exec of the cpu backend that bodies run on. REQUIRES: !uses_metal(exec).
Exec& host_exec(Exec& exec);

// Returns groups that cover `count`, `size` each.
constexpr int num_groups_of(std::int64_t count, std::int64_t size) {
  return static_cast<int>((count + size - 1) / size);
}

}  // namespace pagoda::mlx
