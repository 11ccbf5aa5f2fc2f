// RowDraws: the rows of a step that ops draw on the device. A row then comes back to the host as
// one integer, and the next step can start before the host has read it.
//
// It draws the token that Sampler draws after all changes of the logits (row_changes.h): the same
// weights, filters, random numbers and order. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "draw/rng.h"
#include "sampling/sampling_params.h"
#include "tensor/exec.h"

namespace pagoda {

class RowDraws {
 public:
  // Returns whether ops can do all that these parameters ask for, besides changes of the logits.
  static bool cover(const SamplingParams& params);

  void clear();  // keeps the memory
  // Adds the next row; a row that is not covered is drawn greedily, and its token must be ignored.
  void add(const SamplingParams& params, const RandomKey& place);
  int num_rows() const { return static_cast<int>(inverse_temperatures_.size()); }

  // Draws [rows] int32 from logits [rows, vocab] float32. If all rows are greedy, this calls argmax
  // alone.
  Tensor draw(Exec& exec, const Tensor& logits) const;

  // Calls every op that draw() may call for logits [rows, vocab], so that a backend lists their
  // kernels. Returns the result of one of them: [rows] int32.
  static Tensor call_ops(Exec& exec, const Tensor& logits);

 private:
  std::vector<float> inverse_temperatures_;
  std::vector<std::int32_t> uniforms_;  // [rows, 2]
  std::vector<std::int32_t> top_ks_;
  std::vector<float> top_ps_;
  std::vector<float> min_p_margins_;
  bool has_random_ = false;
  bool has_filters_ = false;
};

}  // namespace pagoda
