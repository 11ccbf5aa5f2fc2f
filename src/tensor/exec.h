// Exec: where ops run. It knows its backend, its worker threads or stream, and hands out memory.
//
// Each model in a process has one engine, one Exec and one thread. An Exec and its tensors belong
// to the thread that uses the Exec first (MLX's streams belong to a thread).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/kv_format.h"
#include "core/status.h"
#include "tensor/tensor.h"

namespace pagoda {

class OpProfile;
struct OpCall;

enum class Backend : std::uint8_t { kReference, kCpu, kMlx, kCuda };
inline constexpr std::size_t kNumBackends = 4;
inline constexpr std::array<Backend, kNumBackends> kBackends = {Backend::kReference, Backend::kCpu,
                                                                Backend::kMlx, Backend::kCuda};

// Traits of a backend. Code outside of the backend asks for these, and never compares names.
struct BackendTraits {
  std::string_view name;
  bool is_native = false;    // computes at once, in the host's memory: ops can be timed one by one
  bool takes_bytes = false;  // supports ExecOptions::int8_activations
  DType activation_dtype = DType::kBFloat16;
  KvFormat kv_cache_format = KvFormat::kBFloat16;  // what --kv-cache-dtype auto means
  // Tokens of a step if --max-num-batched-tokens is 0. There are more if there are many threads.
  int max_num_batched_tokens = 2048;
  int batched_tokens_per_thread = 0;  // at most 2048 in all
};
const BackendTraits& traits_of(Backend backend);
inline std::string_view backend_name(Backend backend) {
  return traits_of(backend).name;
}

// Host values to upload, row-major.
struct HostArray {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Counts of the work of an Exec; they only grow.
struct ExecCounters {
  std::uint64_t num_evaluations = 0;   // of a lazy backend; over two a step: its graph is cut
  std::uint64_t num_late_kernels = 0;  // built in a step: prepare_kernels() had not listed them
  std::uint64_t num_decoded_attentions =
      0;  // calls that decoded the cache first (AttentionPath::kDecoded)
  // Weights of experts that products have read. A device on which the host does not see the choices
  // counts none.
  std::uint64_t num_expert_bytes = 0;
};

class Exec {
 public:
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  virtual ~Exec() = default;

  Backend backend() const { return backend_; }
  virtual int num_threads() const { return 1; }
  // Returns whether evaluate() returns before the work is done, so that the host may do other work
  // meanwhile.
  virtual bool is_asynchronous() const { return false; }

  // Returns a name for all that determines a result's bits besides its inputs: "cpu, avx512". Execs
  // of the same name compute the same bits.
  virtual std::string arithmetic() const { return std::string(backend_name(backend_)); }
  // Returns a readable line about the device; empty if there is none.
  virtual std::string describe() const { return {}; }
  virtual ExecCounters counters() const { return {.num_evaluations = num_evaluations_}; }

  // Memory.

  // Returns how many bytes of the device's memory are available.
  virtual std::int64_t available_bytes() const;

  // Allocates a result's memory, its values undefined. Native backends only. The memory is from an
  // arena, and returns to it when the last handle is released. So a steady step takes the same
  // addresses every time and allocates nothing.
  virtual Tensor allocate(DType dtype, const Shape& shape) = 0;
  // Allocates zeroed memory that outlives steps: keys and values, sampler state. kResourceExhausted
  // if there is too little memory.
  virtual Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) = 0;

  // Returns the host's address of memory from allocate_persistent(); null if the host can't access
  // it. The host must not access memory that a running step uses. The address stays the same,
  // whatever ops write there.
  virtual std::byte* host_address(const Tensor& /*persistent*/) { return nullptr; }

  // Makes the system allocate the memory of a contiguous tensor now; values stay. Otherwise the
  // first write does it, which may take long. A backend may ignore this call.
  virtual void prefault(const Tensor& /*tensor*/) {}

  // The phases of a step: host arrays are uploaded, results are computed, small results are read.

  // Uploads host values as a tensor of this backend; the bytes are copied before it returns.
  virtual Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) = 0;
  template <typename T>
  Tensor upload(std::span<const T> values, const Shape& shape) {
    return upload(dtype_of<T>, shape, std::as_bytes(values));
  }
  // Uploads arrays together: tensors[i] becomes arrays[i]. A backend on which each transfer is
  // expensive makes only one; the default is one for each tensor.
  virtual void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors);

  // Returns whether write() is allowed. If not, a running step may still read the tensor, so
  // callers upload a new tensor instead.
  virtual bool writes_in_place() const { return false; }
  // Overwrites a contiguous tensor from its element `first` on, after all steps so far and before
  // the next one. REQUIRES: writes_in_place().
  virtual void write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes);
  template <typename T>
  void write(const Tensor& tensor, std::int64_t first, std::span<const T> values) {
    write(tensor, first, std::as_bytes(values));
  }

  // Starts the computation of everything that `roots` need. A lazy backend computes here; read()
  // computes what no evaluate() has covered. Each step calls it once. The roots are its outputs and
  // all KV arrays that it wrote, even if a chunk samples nothing. A step calls it again if rows are
  // drawn or scored after the forward pass. Native backends have computed already. It returns
  // before the work is done, so a failure may first show in read().
  virtual Status evaluate(std::span<const Tensor> roots) = 0;
  // Waits for the tensor's values. The bytes, row-major, stay valid as long as the handle. `tensor`
  // is contiguous.
  virtual Result<std::span<const std::byte>> read(const Tensor& tensor) = 0;
  // Reads small results together: values[i] are those of tensors[i], empty if that is undefined. A
  // backend on which each transfer is expensive makes only one; the default is one for each tensor.
  virtual Status read_packet(std::span<const Tensor> tensors,
                             std::span<std::span<const std::byte>> values);

  // Waits for all work that was started. Returns an error that no read() has returned, and clears
  // it: later work does not see it.
  virtual Status finish() { return ok_status(); }

  // Timing and compiling.

  // Returns the profile to which ops add their cost (tensor/op_profile.h); null: nothing is timed.
  OpProfile* profile() const { return profile_.get(); }
  void set_profile(std::shared_ptr<OpProfile> profile) { profile_ = std::move(profile); }
  // Times an op: begin_op() starts, and end_op() adds the call to the profile. OpTimer calls both
  // around every op if there is a profile. The default is the host's clock, which is right if ops
  // are done when they return. A backend with a stream may record events instead, and read them in
  // finish().
  virtual std::uint64_t begin_op();
  virtual void end_op(std::uint64_t begun, const OpCall& call);

  // Builds the kernels of the ops that `call_ops` calls, so that no step waits for a compiler.
  // Nothing is computed: the ops' results are dropped and must not be evaluated. `progress` gets
  // the share that is done; it may be empty. A backend that compiles nothing calls neither
  // function.
  virtual Status prepare_kernels(const std::function<void()>& /*call_ops*/,
                                 const std::function<void(double)>& /*progress*/) {
    return ok_status();
  }

 protected:
  explicit Exec(Backend backend) : backend_(backend) {}
  std::uint64_t num_evaluations_ = 0;

 private:
  Backend backend_;
  std::shared_ptr<OpProfile> profile_;
};

}  // namespace pagoda
