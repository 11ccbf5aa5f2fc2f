// RowChanges: the changes that requests make to a step's logits before they are drawn, for ops to
// do on the device: biases, bans and masks. Penalties come behind them
// (sampling/device/row_penalties.h).
//
// The Sampler's changes, in its order, to the same bits. Processors of logits and DRY are the
// Sampler's alone. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/host/sampler.h"
#include "sampling/sampling_params.h"
#include "tensor/exec.h"

namespace pagoda {

class RowChanges {
 public:
  // Returns whether this covers all that these parameters change, but penalties.
  static bool cover(const SamplingParams& params);
  // Returns whether a change depends on the output: it is known only when the token before has been
  // read.
  static bool look_back(const SamplingParams& params);

  explicit RowChanges(int vocab_size);

  void clear();  // keeps the memory
  // Adds the next row; one that is not covered stays as it is. Its logits are not looked at.
  void add(const RowSampling& row);

  // Returns the logits [rows, vocab] float32, changed; the same tensor where nothing changes.
  Tensor apply(Exec& exec, const Tensor& logits) const;

  // Calls every op that this may call for logits [rows, vocab], so that a backend lists their kernels.
  static void call_ops(Exec& exec, const Tensor& logits);

 private:
  void add_bias(int token_id, float bias);
  void add_rules(const TokenRules& rules, std::span<const int> output);
  void add_mask(std::span<const std::uint32_t> mask);

  int vocab_size_;
  int num_rows_ = 0;
  std::vector<std::int32_t> bias_rows_, bias_ids_;  // [biases]
  std::vector<float> biases_;
  std::vector<std::int32_t> mask_words_;  // [masks, (vocab + 31) / 32]
  std::vector<std::int32_t> mask_of_;     // [rows]; -1: none
  int num_masks_ = 0;
};

}  // namespace pagoda
