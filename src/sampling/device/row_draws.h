// RowDraws: the rows of a step that ops draw on the device. So a row comes back as one integer, and
// the next step can start before the host has read it.
//
// It draws what Sampler draws of logits that nothing changes any more (row_changes.h): the same
// weights, filters, uniforms and order. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "draw/rng.h"
#include "sampling/sampling_params.h"
#include "tensor/exec.h"

namespace pagoda {

class RowDraws {
 public:
  // Filters and all that these parameters ask for beside changes of the logits.
  static bool cover(const SamplingParams& params);

  void clear();  // keeps the memory
  // Adds the next row; one that is not covered is drawn greedily, and its token is not used.
  void add(const SamplingParams& params, const RandomKey& place);
  int num_rows() const { return static_cast<int>(inverse_temperatures_.size()); }

  // Draws [rows] int32 from logits [rows, vocab] float32. Greedy rows alone are an argmax and
  // nothing more.
  Tensor draw(Exec& exec, const Tensor& logits) const;

  // Calls every op that this may call for logits [rows, vocab], so that a backend lists their kernels.
  // Returns what one has drawn: [rows] int32.
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
