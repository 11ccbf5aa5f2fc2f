// Locally typical sampling: keeps the tokens whose surprise is nearest to the expected one.
// Meister, Pimentel, Wiher, Cotterell, "Locally typical sampling", TACL 2023; typical_p in
// llama.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/candidates.h"

namespace pagoda {

class TypicalFilter {
 public:
  // Takes its memory now: 8 bytes for each of `max_candidates`.
  explicit TypicalFilter(std::size_t max_candidates) : keys_(max_candidates) {}

  // Keeps the shortest prefix whose share of the candidates' weight reaches `typical_p`, the token
  // that crosses included, in the order of |surprise - entropy|; of equals the lower id first. The
  // kept are moved to the front; returns how many they are, at least one. candidates: not empty.
  std::size_t keep(const Candidates& candidates, float temperature, float typical_p);

 private:
  std::uint64_t find_last_kept(const Candidates& candidates, float typical_p);

  // Of each candidate, how far its surprise is from the entropy, and its place: an order without
  // ties.
  std::vector<std::uint64_t> keys_;
};

}  // namespace pagoda
