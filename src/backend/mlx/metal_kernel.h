// Kernels of ours on Apple GPUs, where the library's are chosen by shape.
//
// A kernel is the body of a Metal function, in a file beside its op (ops/linear/linear.metal). The
// library writes the signature around it and compiles it when it first runs, with IEEE arithmetic:
// nothing is reassociated, and no product is fused with a sum but by fma.
#pragma once

#include <mlx/array.h>
#include <mlx/fast.h>

#include <string>
#include <utility>
#include <vector>

namespace pagoda::mlx {

struct MetalKernel {
  std::string name;
  ::mlx::core::fast::CustomKernelFunction run;
};

// Makes a kernel of the body of that name. `inputs` are the names that the body has for them; it
// calls the result `out`. The whole body is read: call this once a process.
MetalKernel make_metal_kernel(std::string name, const std::vector<std::string>& inputs,
                              const std::string& body);

struct MetalLaunch {
  std::vector<::mlx::core::array> inputs;  // in the kernel's order
  ::mlx::core::Shape shape;                // of the result
  ::mlx::core::Dtype dtype;
  int num_threads;   // of a threadgroup, a multiple of 32
  int num_groups_x;  // threadgroups
  int num_groups_y;
  std::vector<std::pair<std::string, ::mlx::core::fast::TemplateArg>> constants;
};

// Lazy, as every operation here; throws where there is no Apple GPU.
::mlx::core::array run_metal_kernel(const MetalKernel& kernel, const MetalLaunch& launch);

}  // namespace pagoda::mlx
