// Exec: where ops run. It knows its backend, its worker threads or stream, and hands out memory.
//
// One engine, one Exec, one thread for each model in a process: an Exec and the tensors it makes
// belong to the thread that uses it first (MLX's streams belong to a thread).
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

// Traits of a backend that code outside it asks for, so that no code compares names.
struct BackendTraits {
  std::string_view name;
  bool is_native = false;    // computes at once, in the host's memory: ops can be timed one by one
  bool takes_bytes = false;  // ExecOptions::int8_activations
  DType activation_dtype = DType::kBFloat16;
  KvFormat kv_cache_format = KvFormat::kBFloat16;  // what --kv-cache-dtype auto means
  // Tokens of a step where --max-num-batched-tokens is 0, or more where many threads share them.
  int max_num_batched_tokens = 2048;
  int batched_tokens_per_thread = 0;  // up to 2048 together
};
const BackendTraits& traits_of(Backend backend);
inline std::string_view backend_name(Backend backend) {
  return traits_of(backend).name;
}

// Values of the host that are to be uploaded, row-major.
struct HostArray {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Counts of the work of an Exec; they only grow.
struct ExecCounters {
  std::uint64_t num_evaluations = 0;  // of a lazy backend: one or two a step, else its graph is cut
  std::uint64_t num_late_kernels = 0;  // built in a step: prepare_kernels() had not listed them
  std::uint64_t num_decoded_attentions =
      0;  // calls that decoded the cache first (AttentionPath::kDecoded)
};

class Exec {
 public:
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  virtual ~Exec() = default;

  Backend backend() const { return backend_; }
  virtual int num_threads() const { return 1; }
  // Returns whether evaluate() returns before the work is done, so that the host may do something
  // else meanwhile.
  virtual bool is_asynchronous() const { return false; }

  // Returns the name of all that a result's bits depend on besides its inputs: Execs of the same name
  // compute the same ("cpu, avx512").
  virtual std::string arithmetic() const { return std::string(backend_name(backend_)); }
  // Returns a line about the device, for people; empty where there is nothing to say.
  virtual std::string describe() const { return {}; }
  virtual ExecCounters counters() const { return {.num_evaluations = num_evaluations_}; }

  // Memory.

  // Returns the bytes that are left of the device's memory.
  virtual std::int64_t available_bytes() const;

  // Allocates a result's memory, its values undefined. Native backends only: it comes from an arena
  // whose spans return on a handle's last release. So a steady step takes the same addresses every
  // time and allocates nothing.
  virtual Tensor allocate(DType dtype, const Shape& shape) = 0;
  // Allocates zeroed memory that outlives steps: keys and values, sampler state. kResourceExhausted
  // where there is too little.
  virtual Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) = 0;

  // Returns where the host reads and writes memory of allocate_persistent(), which must not be what
  // a step in flight uses; null where it can't. The address stays, whatever ops write there.
  virtual std::byte* host_address(const Tensor& /*persistent*/) { return nullptr; }

  // Has the system give the memory of a contiguous tensor now, where it would else at the first
  // write, which may wait long for it; values stay. A wish: a backend may do nothing.
  virtual void prefault(const Tensor& /*tensor*/) {}

  // A step's life: host arrays go up, what was built is computed, small results come back.

  // Uploads host values as a tensor of this backend; the bytes are copied before it returns.
  virtual Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) = 0;
  template <typename T>
  Tensor upload(std::span<const T> values, const Shape& shape) {
    return upload(dtype_of<T>, shape, std::as_bytes(values));
  }
  // Uploads arrays together: tensors[i] becomes arrays[i]. A backend whose transfers cost more than
  // their bytes makes one of them; the default is one each.
  virtual void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors);

  // Returns whether write() works: elsewhere a step that still runs may read what it would change,
  // and a new upload takes its place.
  virtual bool writes_in_place() const { return false; }
  // Changes a contiguous tensor from its element `first` on, behind all steps so far and before the
  // next. REQUIRES: writes_in_place().
  virtual void write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes);
  template <typename T>
  void write(const Tensor& tensor, std::int64_t first, std::span<const T> values) {
    write(tensor, first, std::as_bytes(values));
  }

  // Starts the computation of everything built so far that `roots` need. A lazy backend computes
  // here, and in read() what no evaluate() has covered. It is called once a step, with the outputs
  // and every KV array written (by a chunk that samples nothing too) as roots. It is called once
  // more where rows are drawn or scored behind the forward. Native backends have computed already.
  // Returns before the work is done; a failure may only show in read().
  virtual Status evaluate(std::span<const Tensor> roots) = 0;
  // Waits for the tensor's values. The bytes, row-major, stay valid as long as the handle. `tensor`
  // is contiguous.
  virtual Result<std::span<const std::byte>> read(const Tensor& tensor) = 0;
  // Reads small results together: values[i] are those of tensors[i], none of an undefined tensor. A
  // backend whose transfers cost more than their bytes makes one of them; the default is one each.
  virtual Status read_packet(std::span<const Tensor> tensors,
                             std::span<std::span<const std::byte>> values);

  // Waits until all is done that was started. An error that no read() has shown shows here, and is
  // forgotten: what comes next begins anew.
  virtual Status finish() { return ok_status(); }

  // Timing and compiling.

  // Returns the profile that ops add their cost to (tensor/op_profile.h); null: nowhere, and
  // nothing is timed.
  OpProfile* profile() const { return profile_.get(); }
  void set_profile(std::shared_ptr<OpProfile> profile) { profile_ = std::move(profile); }
  // Begins to time an op, and adds the call to the profile; OpTimer calls both around every op
  // where there is a profile. The time is the host's clock's, which is right where ops are done
  // when they return; a backend with a stream records events there, and reads them in finish().
  virtual std::uint64_t begin_op();
  virtual void end_op(std::uint64_t begun, const OpCall& call);

  // Builds the kernels of the ops that `call_ops` calls, so that no step waits for a compiler.
  // Nothing is computed: the ops' results are dropped, and no evaluate() may come of them.
  // `progress` gets the part that is done; it may be empty. A backend that compiles nothing calls
  // neither.
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
