// rope: rotary position embedding (Su et al., RoFormer, 2021, arXiv:2104.09864).
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Which elements of a head a rotation pairs. kHalves: i with i + head_dim / 2 (Hugging Face,
// GPT-NeoX). kAdjacent: 2i with 2i + 1 (the original Llama; GGUF files of the llama architecture
// have their q and k rows permuted for it).
enum class RopeStyle { kHalves, kAdjacent };

struct RopeArgs {
  RopeStyle style = RopeStyle::kHalves;
};

// Pair i of the token at position p turns by the angle p * inv_freq[i]:
//   out[a] = x[a] cos - x[b] sin;  out[b] = x[b] cos + x[a] sin      for the pair (a, b)
//   x          [tokens, heads, head_dim]; the last extent contiguous, the others at any stride
//   positions  [tokens] int32
//   inv_freq   [head_dim / 2] float32, scaling already applied
//   out        x's shape and dtype, contiguous
// Angles, sines and cosines are float32 at least.
Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions, const Tensor& inv_freq,
            const RopeArgs& args);

PAGODA_DECLARE_BODIES(Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions,
                                  const Tensor& inv_freq, const RopeArgs& args))

}  // namespace pagoda
