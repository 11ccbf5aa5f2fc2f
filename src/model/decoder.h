// Decoder: a dense decoder, from token ids to logits. It computes all families, which differ in
// their config's values.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "batch/step_batch.h"
#include "core/status.h"
#include "kv/kv_store.h"
#include "model/blocks/per_layer_block.h"
#include "model/layer_blocks.h"
#include "model/model_config.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The residual stream before the final norm, as two terms. last_hidden() and logits() add the
// terms, for the requested rows alone.
struct HiddenState {
  Tensor residual;  // [tokens, hidden]
  Tensor delta;     // [tokens, hidden], the last block's output before its norm
};

class Decoder {
 public:
  // Called with the share of layers loaded, in (0, 1].
  using Progress = std::function<void(double)>;

  // Packs the checkpoint's weights for `exec`, in the order in which a step reads them. If `layout`
  // stores a layer's keys as codes, its weights are changed so that keys quantise well
  // (blocks/attention_block.h). kNotFound names a missing tensor, kDataLoss one of a wrong shape,
  // kUnsupported a family or format that nothing here computes. REQUIRES: `layout` has as many
  // layers as the config.
  static Result<Decoder> load(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                              const KvLayout& layout, const Progress& progress = {});

  const ModelConfig& config() const { return config_; }
  // Returns the bytes of weights that each decode step reads, and those of the experts that a token
  // chooses.
  std::int64_t num_weight_bytes() const { return num_weight_bytes_; }
  std::int64_t num_expert_bytes_per_token() const { return num_expert_bytes_per_token_; }

  // Computes hidden states of token ids; writes the step's keys and values into `kv`, whose layers
  // it rebinds.
  HiddenState forward(Exec& exec, const StepBatch& batch, KvStore& kv) const;

  // Computes the hidden states [n, hidden] float32 after the final norm, for rows [n] int32. They
  // are the result of the checkpoint's norm times config().logits_factor.
  Tensor last_hidden(Exec& exec, const HiddenState& state, const Tensor& rows) const;

  // Computes logits [n, vocab] float32 of rows [n] int32, indices of the state's tokens. Only these
  // rows are normed and projected. REQUIRES: config().has_head.
  Tensor logits(Exec& exec, const HiddenState& state, const Tensor& rows) const;

 private:
  // Norms are [hidden], or undefined if the family has none.
  struct Layer {
    Tensor attention_norm;
    MixerBlock mixer;
    Tensor attention_delta_norm;  // of the output of attention
    Tensor mlp_norm;
    MlpBlock mlp;
    Tensor mlp_delta_norm;  // of the output of the MLP
    std::optional<PerLayerBlock> per_layer;
    Tensor per_layer_delta_norm;
    float factor = 1;  // multiplies the layer's output

    Tensor mix(const Step& step, const Tensor& x) const;
    // Computes the MLP of x, the normed residual stream.
    Tensor apply_mlp(const Step& step, const Tensor& x, const Tensor& residual) const;
    // Visits the projections in the order in which a step computes them.
    template <typename Visit>
    void for_each_projection(const Visit& visit) const;
  };
  static Result<Layer> load_layer(const BlockSource& source);
  AddRmsNormArgs sum_args(const Tensor& delta_norm) const;
  AddRmsNormArgs last_sum_args(const Layer& layer) const;
  std::vector<Tensor> angles(Exec& exec, const StepBatch& batch, const QueryGrowth& growth) const;
  Status load_ends(Exec& exec, const Checkpoint& checkpoint);
  Status load_rope_tables(Exec& exec);
  void link_weights(const Exec& exec);

  ModelConfig config_;
  std::vector<Tensor> rope_inv_freqs_;  // one per rope table of the config: [rotary_dim / 2]
  std::vector<Layer> layers_;
  Tensor final_norm_;  // [hidden]
  Weight embedding_;   // vocab x hidden
  PerLayerEmbedding per_layer_embedding_;
  Projection head_;  // vocab x hidden; the embedding itself if they are tied; or undefined
  std::int64_t num_weight_bytes_ = 0;
  std::int64_t num_expert_bytes_per_token_ = 0;
};

}  // namespace pagoda
