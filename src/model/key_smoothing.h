// The smoothing of keys when weights are loaded. It removes what makes keys hard to quantise but
// does not affect scores. These are rotary pairs that norms or projections make large, and a bias
// that all keys share.
//
// Pairs are balanced as in QServe's SmoothAttention (Lin et al., 2024, arXiv:2405.04532), but by
// powers of two and from the weights alone. A mean is subtracted from keys as in SageAttention
// (Zhang et al., 2024, arXiv:2410.02367). Here it is the mean of the rotated bias, so that a key
// depends on its own token alone.
#pragma once

#include <span>
#include <vector>

#include "model/model_config.h"
#include "quant/host_tensor.h"

namespace pagoda {

// Divides each rotary pair of k_norm by 2^e and multiplies the same pair of q_norm by 2^e. Here e =
// round(log2 sqrt(|k| / |q|)), from the pair's weights. So queries and keys share large weights
// equally. Products of rotated queries and keys keep their bits in float arithmetic that neither
// overflows nor underflows. A pair stays as it is if a weight would lose bits, or if a weight is
// zero or not finite. REQUIRES: both [head_dim], even.
void balance_norms(std::span<float> q_norm, std::span<float> k_norm, const RopeTable& table);

// The projection of a layer's queries, or of its keys.
struct HeadProjection {
  HostTensor& weight;          // [num_heads * head_dim, hidden]
  HostTensor* bias = nullptr;  // [num_heads * head_dim]; null: none
  int num_heads = 0;
};

// Balances a layer without norms. In each head of keys the rows of a rotary pair are divided by
// 2^e. In the query heads that read it the pair's rows are multiplied by 2^e. Biases are scaled
// likewise. e = round(log2 sqrt(|k| / |q|)): |k| is the norm of the pair's rows in the keys'
// weight, |q| the root mean square of its norms in the query heads' weights. Every score keeps its
// bits, as above: e is limited so that no row loses bits in its format (quant/tensor_rows.h). The
// error of a head's scores grows with the norm of its key times that of its queries. A head stays
// as it is if balancing would lower this product by less than a fifth. Tensors that change move
// into memory of their own, and their sources' pages are released. REQUIRES: tensors of the shapes
// above, as a checkpoint's reader has checked them; head_dim is even, and the number of query heads
// is a multiple of the number of key heads.
void balance_projections(const HeadProjection& queries, const HeadProjection& keys, int head_dim,
                         const RopeTable& table);

// Returns the mean of a bias [num_kv_heads * head_dim], rotated by the table, over positions 0 to
// num_positions - 1. It has the shape of the bias. REQUIRES: num_positions > 0.
std::vector<float> mean_rotated_bias(std::span<const float> bias, const RopeTable& table,
                                     int head_dim, int num_positions);

}  // namespace pagoda
