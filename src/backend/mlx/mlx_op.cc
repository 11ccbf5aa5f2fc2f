// How MLX runs an op: as one primitive of its graph, by kernels if MLX has Metal, else by the cpu
// backend's body on MLX's thread of the stream.
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
#include "backend/gpu/gpu_op.h"

#include <mlx/array.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>
#include <mlx/stream.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "backend/mlx/metal_dispatch.h"
#include "backend/mlx/mlx_exec.h"
#include "backend/native_exec.h"

namespace pagoda::mlx {
namespace {

using gpu::GpuOp;
using gpu::HostBody;
using gpu::kFresh;
using gpu::OpOutput;

// MLX allocates an op's outputs when it submits the op, dozens of ops ahead of the one that runs.
// So large results of a prompt would be in memory and not in the caches: 512 tokens of SmolLM2 run
// at 70 % of the cpu backend's speed instead of 90 %. The thread that submits an op with a result
// of this size therefore computes it at once.
constexpr std::size_t kLargeResult = std::size_t{256} << 10;

// MLX's memory as a Buffer that bodies read and write.
class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(std::byte* bytes, std::size_t size) : Buffer(MemorySpace::kHost, bytes, size) {}

 private:
  void release() override { delete this; }
};

BufferRef memory_of(const mx::array& array) {
  // Bodies write to KV caches, which are inputs.
  auto* const bytes = const_cast<char*>(array.data<char>());
  return BufferRef(new BorrowedBuffer(reinterpret_cast<std::byte*>(bytes), array.nbytes()));
}

// Returns all of an array's memory in elements of another type.
mx::array seen_as(const mx::array& array, mx::Dtype dtype) {
  const std::size_t size = array.data_size() * array.itemsize() / dtype.size();
  mx::array seen({static_cast<mx::ShapeElem>(size)}, dtype, nullptr, {});
  seen.copy_shared_buffer(array, {1}, array.flags(), size);
  return seen;
}

// Counts an op of the stream's thread as done when it is destroyed.
class EndOfCall {
 public:
  explicit EndOfCall(HostBodies& host) : host_(host) {}
  ~EndOfCall() { host_.num_waiting.fetch_sub(1, std::memory_order_release); }
  EndOfCall(const EndOfCall&) = delete;
  EndOfCall& operator=(const EndOfCall&) = delete;

 private:
  HostBodies& host_;
};

// Computes an op's outputs into memory that MLX has allocated. All memory here outlives the call:
// MLX holds the arrays until its stream has finished the op.
struct HostCall {
  HostBody body;
  std::shared_ptr<HostBodies> host;
  std::vector<Tensor> inputs;
  std::vector<std::span<std::byte>> results;  // empty if the op writes to an input's memory

  std::size_t result_bytes() const {
    std::size_t bytes = 0;
    for (const std::span<std::byte> result : results) bytes += result.size();
    return bytes;
  }

  void run() const {
    NativeExec::Loan loan(static_cast<NativeExec&>(*host->exec));
    for (const std::span<std::byte> result : results) {
      if (!result.empty()) loan.add(BufferRef(new BorrowedBuffer(result.data(), result.size())));
    }
    const std::vector<Tensor> computed = body(*host->exec, inputs);
    PAGODA_CHECK(computed.size() == results.size(), "[mlx] a body of another number of outputs");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].empty()) continue;
      const std::span<const std::byte> bytes = computed[i].bytes();
      PAGODA_CHECK(bytes.size() == results[i].size(), "[mlx] a body's output of another size");
      if (bytes.data() == results[i].data()) continue;
      std::memcpy(results[i].data(), bytes.data(), bytes.size());
    }
  }
};

class Primitive final : public mx::Primitive {
 public:
  Primitive(mx::Stream stream, std::shared_ptr<HostBodies> host, GpuOp op)
      : mx::Primitive(stream), host_(std::move(host)), op_(std::move(op)) {
    // The graph holds the arrays; op_ only keeps each input's offset and strides.
    for (Tensor& input : op_.inputs) input = input.over(BufferRef());
  }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    if (op_.host == nullptr) return eval_gpu(inputs, outputs);
    give_memory(inputs, outputs);
    HostCall call = host_call(inputs, outputs);
    if (call.result_bytes() >= kLargeResult) {
      if (host_->num_waiting.load(std::memory_order_acquire) > 0) mx::synchronize(stream());
      call.run();
      return;
    }
    host_->num_waiting.fetch_add(1, std::memory_order_relaxed);
    mx::cpu::get_command_encoder(stream()).dispatch([call = std::move(call)] {
      const EndOfCall end(*call.host);  // even if the body throws
      call.run();
    });
  }

  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    give_memory(inputs, outputs);
    std::vector<MetalInput> places;
    std::vector<mx::array> others;
    places.reserve(inputs.size());
    others.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      // Layers with different KV formats may share memory. Then the array may have the element type
      // of the other layer.
      const mx::Dtype dtype = to_mlx(op_.inputs[i].dtype());
      const bool is_other = dtype.size() != inputs[i].itemsize();
      if (is_other) others.push_back(seen_as(inputs[i], dtype));
      places.push_back({is_other ? &others.back() : &inputs[i], byte_offset(op_.inputs[i])});
    }
    dispatch_launch(stream(), op_.launch, places, outputs);
  }

  const char* name() const override { return op_.name.data(); }

 private:
  static std::int64_t byte_offset(const Tensor& tensor) {
    return tensor.offset() * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
  }

  void give_memory(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int memory_of = op_.outputs[i].memory_of;
      if (memory_of == kFresh) {
        set_aligned_data(outputs[i]);
      } else {
        const mx::array& input = inputs[memory_of];
        // The array's element type may differ from the tensor's.
        const std::size_t size = input.data_size() * input.itemsize() / outputs[i].itemsize();
        outputs[i].copy_shared_buffer(input, outputs[i].strides(), input.flags(), size);
      }
    }
  }

  // Makes the host's call. The op is evaluated once, so its body is moved into the call.
  HostCall host_call(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
    HostCall call{.body = std::move(op_.host), .host = host_};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      call.inputs.push_back(op_.inputs[i].over(memory_of(inputs[i])));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::span<std::byte> result;
      if (op_.outputs[i].memory_of == kFresh)
        result = {reinterpret_cast<std::byte*>(outputs[i].data<char>()), outputs[i].nbytes()};
      call.results.push_back(result);
    }
    return call;
  }

  std::shared_ptr<HostBodies> host_;
  GpuOp op_;
};

}  // namespace

std::vector<Tensor> MlxExec::run(GpuOp op) {
  std::vector<mx::array> inputs;
  inputs.reserve(op.inputs.size());
  for (const Tensor& input : op.inputs) inputs.push_back(whole_array(input));
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (const OpOutput& output : op.outputs) {
    shapes.push_back(to_mlx(output.shape));
    dtypes.push_back(to_mlx(output.dtype));
  }
  std::vector<OpOutput> outputs = op.outputs;
  list_kernels(op.launch);
  const bool is_last = is_due(op.launch);
  auto primitive =
      std::make_shared<Primitive>(mx::default_stream(mx::default_device()), host_, std::move(op));
  std::vector<mx::array> arrays =
      mx::array::make_arrays(std::move(shapes), dtypes, std::move(primitive), inputs);
  if (is_last) hand_over(arrays);
  std::vector<Tensor> results;
  results.reserve(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i)
    results.push_back(tensor_of(std::move(arrays[i]), outputs[i].dtype, outputs[i].shape));
  return results;
}

}  // namespace pagoda::mlx
