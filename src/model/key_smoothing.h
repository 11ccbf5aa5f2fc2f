// The smoothing of keys at load, of what makes them hard to quantise and no score needs: norms that
// make some rotary pairs large, and a bias that all keys have in common.
//
// Norms are balanced as in QServe's SmoothAttention (Lin et al., 2024, arXiv:2405.04532), by powers
// of two. A mean is taken from keys as in SageAttention (Zhang et al., 2024, arXiv:2410.02367); here
// it is the bias's, so that a key depends on its own token alone.
#pragma once

#include <span>
#include <vector>

#include "model/model_config.h"

namespace pagoda {

// Divides each rotary pair of k_norm by 2^e and multiplies q_norm's by it, e = round(log2 sqrt(|k| /
// |q|)) of the pair's weights: queries and keys then share what the weights make large. Products of
// turned queries and keys keep their bits in float arithmetic that neither overflows nor underflows.
// A pair stays as it is where a weight would lose bits, or where one is zero or not finite.
// REQUIRES: both [head_dim], even.
void balance_norms(std::span<float> q_norm, std::span<float> k_norm, RopeStyle style);

// Returns the mean over positions 0 to num_positions - 1 of what the table's rotation makes of a
// bias [num_kv_heads * head_dim], in its shape. REQUIRES: num_positions > 0.
std::vector<float> mean_turned_bias(std::span<const float> bias, const RopeTable& table,
                                    int num_positions);

}  // namespace pagoda
