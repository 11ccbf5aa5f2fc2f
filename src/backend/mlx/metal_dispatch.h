// Encodes launches into MLX's command encoders. The only file that knows MLX's Metal headers is
// metal_dispatch.cc; where MLX has no Metal, backend/absent/metal.cc stands in its place.
//
// Errors are MLX's exceptions: a source that does not compile, a stream of another thread.
#pragma once

#include <mlx/array.h>
#include <mlx/stream.h>

#include <cstdint>
#include <span>

#include "backend/mlx/metal_launch.h"

namespace pagoda::mlx {

// An input of a launch: the array, and where in it a kernel's pointer begins.
struct MetalInput {
  const ::mlx::core::array* array = nullptr;
  std::int64_t byte_offset = 0;
};

// Returns whether MLX computes on an Apple GPU here.
bool metal_is_available();

// Compiles a function, unless it is already. Takes a second or so, and may be called on any thread.
void build_pipeline(const MetalFunction& function);

// Returns how many functions were first compiled by a dispatch, so that a step waited for them.
std::uint64_t num_late_pipelines();

// Encodes the launch's dispatches, in order. The arrays have memory; the inputs have been encoded
// before. Called by the thread of `stream` while it evaluates the op.
void dispatch_launch(::mlx::core::Stream stream, const MetalLaunch& launch,
                     std::span<const MetalInput> inputs, std::span<::mlx::core::array> outputs);

}  // namespace pagoda::mlx
