// Encodes launches into MLX's command encoders. Only metal_dispatch.cc includes MLX's Metal
// headers. If MLX has no Metal, backend/absent/metal.cc replaces that file.
//
// Errors are MLX's exceptions: a source that does not compile, a stream of another thread.
#pragma once

#include <mlx/array.h>
#include <mlx/stream.h>

#include <cstdint>
#include <span>

#include "backend/gpu/gpu_launch.h"

namespace pagoda::mlx {

// An input of a launch: an array, and the offset in it where a kernel's pointer begins.
struct MetalInput {
  const ::mlx::core::array* array = nullptr;
  std::int64_t byte_offset = 0;
};

// Returns whether MLX computes on an Apple GPU here.
bool metal_is_available();

// Compiles a function unless it is compiled already. Takes about a second. May be called on any
// thread.
void build_pipeline(const gpu::GpuFunction& function);

// Returns how many functions were not compiled before their first dispatch: steps waited for them.
std::uint64_t num_late_pipelines();

// Encodes the launch's dispatches, in order. REQUIRES: the arrays have memory; the ops that produce
// the inputs have been encoded. Called by the thread of `stream` while it evaluates the op.
void dispatch_launch(::mlx::core::Stream stream, const gpu::GpuLaunch& launch,
                     std::span<const MetalInput> inputs, std::span<::mlx::core::array> outputs);

}  // namespace pagoda::mlx
