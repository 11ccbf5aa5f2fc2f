// RowChanges: the changes that requests make to a step's logits before the draw (biases, bans and
// masks), for ops to apply on the device. Penalties follow them (sampling/device/row_penalties.h).
//
// The results have the bits of the Sampler's changes, in its order. Logits processors and DRY are
// done by the Sampler alone. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/host/sampler.h"
#include "sampling/sampling_params.h"
#include "tensor/exec.h"

namespace pagoda {

class RowChanges {
 public:
  // Returns whether this makes all changes that these parameters ask for, except penalties.
  static bool cover(const SamplingParams& params);
  // Returns whether a change depends on the output, and so is known only after the previous token
  // has been read.
  static bool look_back(const SamplingParams& params);

  explicit RowChanges(int vocab_size);

  void clear();  // keeps the memory
  // Adds the next row; the logits of a row that is not covered stay as they are. Ignores
  // row.logits.
  void add(const RowSampling& row);

  // Returns the changed logits [rows, vocab] float32; the same tensor if nothing changes.
  Tensor apply(Exec& exec, const Tensor& logits) const;

  // Calls every op that apply() may call for logits [rows, vocab], so that a backend lists their
  // kernels.
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
