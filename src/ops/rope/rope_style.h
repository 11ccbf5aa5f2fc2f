// RopeStyle: which elements of a head a rotation pairs. Checkpoints say it, and the op takes it.
#pragma once

namespace pagoda {

// kHalves: i with i + head_dim / 2 (Hugging Face, GPT-NeoX). kAdjacent: 2i with 2i + 1 (the
// original Llama; GGUF files of the llama architecture have their q and k rows permuted for it).
enum class RopeStyle { kHalves, kAdjacent };

}  // namespace pagoda
