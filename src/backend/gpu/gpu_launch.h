// GpuLaunch: the work of an op on a GPU, as plain values.
//
// An op's body fills in a launch, and a backend encodes it: backend/mlx/metal_dispatch.cc does for
// Apple GPUs. A launch depends only on shapes and host values, so that it is complete when a step is
// recorded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/check.h"

// Metal's name of the type, for structs of parameters: Metal's compiler reads them, too.
using uint = unsigned int;

namespace pagoda::gpu {

// A .metal file in which each #include is replaced by the file's text (src/ops/gpu.cmake).
struct GpuSource {
  std::string_view name;  // "linear"
  std::string_view text;  // ASCII
};

// A kernel of a file, and the template arguments that it is compiled for.
struct GpuFunction {
  const GpuSource* source = nullptr;
  std::string_view name;  // "attention_decode"
  std::vector<std::string_view> arguments =
      {};  // as Metal spells them: {"bfloat", "128"}; empty if
           // the kernel is no template

  // Returns the unique name of this binary: "attention_decode_bfloat_128".
  std::string binary_name() const;
  // Returns the whole text that is compiled: the file, and the template's instantiation.
  std::string text() const;
};

// A buffer of a launch. Inputs and outputs are the op's, in its order; scratch is the launch's own.
struct GpuOperand {
  enum class Kind : std::uint8_t { kInput, kOutput, kScratch };
  Kind kind = Kind::kInput;
  int index = 0;
};
inline GpuOperand input(int index) {
  return {GpuOperand::Kind::kInput, index};
}
inline GpuOperand output(int index) {
  return {GpuOperand::Kind::kOutput, index};
}
inline GpuOperand scratch(int index) {
  return {GpuOperand::Kind::kScratch, index};
}

// A kernel's parameters: one plain struct of at most kMaxBytes, copied into the command.
class GpuParameters {
 public:
  static constexpr std::size_t kMaxBytes = 128;

  GpuParameters() = default;
  template <typename T>
  GpuParameters(const T& values) : size_(sizeof(T)) {  // NOLINT(google-explicit-constructor)
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxBytes);
    std::memcpy(bytes_.data(), &values, sizeof(T));
  }

  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return size_; }

 private:
  alignas(16) std::array<std::byte, kMaxBytes> bytes_ = {};
  std::size_t size_ = 0;
};

// One dispatch. Buffer i of the kernel's signature is buffers[i]; `parameters` have the next index.
// Outputs are written. Inputs are only read, even if an output shares their memory. A scratch
// buffer is written by the first dispatch that names it, and only read by later ones.
struct GpuDispatch {
  GpuFunction function;
  std::vector<GpuOperand> buffers;
  GpuParameters parameters;
  std::array<int, 3> num_groups = {1, 1, 1};  // threadgroups
  int num_threads = 32;                       // per threadgroup; a multiple of 32, at most 1,024
  int threadgroup_bytes = 0;                  // size of `shared`, at most 32,768
};

// The dispatches of an op: one, or two if a second one merges partial results.
struct GpuLaunch {
  std::vector<GpuDispatch> dispatches;
  std::vector<std::size_t> scratch_bytes = {};
  double flops = 0;  // approximate; with `bytes` they bound how long a command buffer runs
  double bytes = 0;
};

}  // namespace pagoda::gpu
