// RopeStyle: which two elements of a head are rotated as a pair. It depends on the checkpoint.
#pragma once

#include <cstdint>

namespace pagoda {

// kHalves: i with i + pairs (Hugging Face, GPT-NeoX). kAdjacent: 2i with 2i + 1 (the
// original Llama; GGUF files of the llama architecture have their q and k rows permuted for it).
enum class RopeStyle { kHalves, kAdjacent };

// Returns whether the first `width` elements of a head can be rotated. The pairs of a run, which
// one lane of a GPU holds, must all be rotated, or none of them.
constexpr bool is_rotary_width(std::int64_t width, std::int64_t head_dim) {
  const std::int64_t run = head_dim % 256 == 0 ? 4 : head_dim % 128 == 0 ? 2 : 1;
  return width > 0 && width <= head_dim && width % (2 * run) == 0;
}

}  // namespace pagoda
