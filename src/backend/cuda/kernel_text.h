// Kernels as CUDA's compiler reads them. They are written once, in a part of Metal's language
// (backend/gpu/kernel.metal.h). A few headers define what they use of Metal's library (shim/): a
// warp is a SIMD group.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "backend/gpu/gpu_launch.h"

namespace pagoda::cuda {

// A kernel as a dispatch asks for it: what its binary depends on.
struct KernelShape {
  gpu::GpuFunction function;
  int num_buffers = 0;
  std::size_t parameter_bytes = 0;
  int num_threads = 0;
};
KernelShape shape_of(const gpu::GpuDispatch& dispatch);

// Returns the whole text: the source without address spaces, and an entry point. The entry takes one
// argument, which KernelArguments of shim/entry.h lays out: the buffers' addresses, then, at a
// multiple of 16 bytes, the parameters.
std::string cuda_text(const KernelShape& kernel);

// Returns the name of the entry point.
std::string entry_name(const KernelShape& kernel);

// Returns the size of the entry's argument, and where the parameters begin in it.
constexpr std::size_t parameters_begin(std::size_t num_buffers) {
  return (num_buffers * sizeof(void*) + 15) / 16 * 16;
}
constexpr std::size_t argument_bytes(std::size_t num_buffers, std::size_t parameter_bytes) {
  return parameters_begin(num_buffers) + (parameter_bytes + 15) / 16 * 16;
}

// A header that texts include, by name.
struct ShimHeader {
  const char* name;
  const char* text;
};
std::span<const ShimHeader> shim_headers();

}  // namespace pagoda::cuda
