// MlxOp: the MLX primitive by which every op of the mlx backend runs.
//
// An op names its inputs, its outputs, and what computes them: dispatches of our kernels if MLX
// runs on Metal, else the cpu backend's body of the op on the host. Each op is one node of MLX's
// graph; views have no node. If an input is a slice of an array, the kernel gets the whole array,
// and an offset and strides as parameters.
//
// Outputs that share an input's memory. MLX's arrays are values: an update is a copy, or at best a
// donated buffer. Here an output may share an input's buffer instead. So the KV cache stays at its
// address, and a step writes only its own tokens. No reader sees the old array change, because:
// - A write comes before the reads of its step: attention reads the returned array, so the graph
//   has an edge from the write to the read. The store keeps only the returned array (rebind), so
//   that the next write depends on this one, too.
// - Reads of an earlier step come before this write. MLX orders a graph only by its edges, so a
//   step must be evaluated as a whole before the next one is. A CPU stream runs work in the order
//   of submission, which is enough for any number of steps in flight. On Metal a kernel waits for
//   earlier kernels of its own command encoder that read the buffer, and for encoders that wrote
//   it. It does not wait for earlier encoders that only read it. On Metal the owner of the blocks
//   ensures the order. An entry is written once, and a block gets a new owner only after the host
//   has seen the end of the last step that uses it. So a write and an older read that are both in
//   flight never touch the same entry.
// - The memory is never reused for another result: MlxExec::allocate_persistent gives it a deleter
//   of its own, and MLX donates only buffers without one.
//
// Used only by the thread of its Exec; on the host, bodies run on MLX's thread of the stream.
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
  int memory_of = kFresh;  // index of the input whose memory it shares
};

// Computes an op on the host by the cpu backend's body, on its Exec. Returns a tensor per output.
// An output that shares an input's memory is written there, and the tensor returned for it is
// ignored. Data of the step that a body refers to, other than the inputs, must live as long as the
// body.
using HostBody = std::function<std::vector<Tensor>(Exec& host, std::span<const Tensor> inputs)>;

struct MlxOp {
  std::string_view name;       // a literal: "rms_norm"
  std::vector<Tensor> inputs;  // all defined; any strides. A kernel's buffer begins at the input's
                               // first element
  std::vector<OpOutput> outputs;  // fresh ones are contiguous
  MetalLaunch launch;             // empty unless the Exec uses Metal
  HostBody host;                  // null if the Exec uses Metal
};

// Records the op and returns its outputs, which MLX computes later.
std::vector<Tensor> run(Exec& exec, MlxOp op);

// Returns whether ops of this Exec are kernels on Metal; if not, they are bodies on the host.
bool uses_metal(const Exec& exec);
// Returns the Exec of the cpu backend that bodies run on. REQUIRES: !uses_metal(exec).
Exec& host_exec(Exec& exec);

// Returns how many groups of `size` cover `count`.
constexpr int num_groups_of(std::int64_t count, std::int64_t size) {
  return static_cast<int>((count + size - 1) / size);
}

}  // namespace pagoda::mlx
