// AttentionScratch: the memory that one thread's attention worker takes.
//
// A worker takes its arrays in the order of its constructor. An AttentionScratch without memory
// only counts them, so the size that a call allocates always fits the arrays.
#pragma once

#include <cstdint>

#include "core/check.h"

namespace pagoda::cpu {

class AttentionScratch {
 public:
  AttentionScratch() = default;  // only counts
  AttentionScratch(float* memory, std::int64_t num_floats)
      : memory_(memory), num_floats_(num_floats) {}

  // Takes `count` floats, rounded up to whole vectors of the widest kind. Returns null if it only
  // counts.
  float* take(std::int64_t count) {
    float* const taken = memory_ == nullptr ? nullptr : memory_ + num_taken_;
    num_taken_ += (count + kAlignment - 1) / kAlignment * kAlignment;
    PAGODA_CHECK(memory_ == nullptr || num_taken_ <= num_floats_,
                 "attention takes the scratch that it has counted");
    return taken;
  }
  std::int64_t num_taken() const { return num_taken_; }

 private:
  static constexpr std::int64_t kAlignment = 16;

  float* memory_ = nullptr;
  std::int64_t num_floats_ = 0;
  std::int64_t num_taken_ = 0;
};

}  // namespace pagoda::cpu
