// Locally typical sampling: keeps the tokens whose surprise is nearest to the expected one.
// Meister, Pimentel, Wiher, Cotterell, "Locally typical sampling", TACL 2023; typical_p in
// llama.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "sampling/host/candidates.h"

namespace pagoda {

class TypicalFilter {
 public:
  // Allocates all its memory: 12 bytes for each of `max_candidates`.
  explicit TypicalFilter(std::size_t max_candidates)
      : distances_(std::make_unique_for_overwrite<std::uint32_t[]>(max_candidates)),
        keys_(std::make_unique_for_overwrite<std::uint64_t[]>(max_candidates)) {}

  // Orders the candidates by |surprise - entropy|, the lower id first among equals. Keeps the
  // shortest prefix whose share of the weight reaches `typical_p`, including the token that crosses
  // it. Moves the kept ones to the front and returns their number, at least one. candidates: not
  // empty.
  std::size_t keep(const Candidates& candidates, float temperature, float typical_p);

 private:
  // A distance's bucket is its 11 highest bits after the sign.
  static constexpr std::size_t kNumBuckets = 1 << 11;

  std::uint64_t find_last_kept(const Candidates& candidates, float typical_p);
  std::uint64_t find_last_of(const Candidates& candidates, std::size_t count, std::uint64_t left);

  // The distance of each candidate's surprise from the entropy, as the bits of a float32.
  std::unique_ptr<std::uint32_t[]> distances_;
  // The keys of the candidates in the bucket that crosses: distance, then place, an order without
  // ties.
  std::unique_ptr<std::uint64_t[]> keys_;
  std::array<std::uint64_t, kNumBuckets> bucket_weights_ = {};
};

}  // namespace pagoda
