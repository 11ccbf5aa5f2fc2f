// WaitingQueue: sequences that wait for a place to run, in their order: the lower priority value
// first, then arrival.
//
// Priority is every client's to choose, so it is a preference and no right: in every
// `num_steps_per_turn` steps in which others overtake them, the first that came of all that wait
// becomes the first of all, whatever its priority. So nothing starves, and those of better priority
// lose one place in some seconds.
//
// Thread-compatible.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/sequence.h"

namespace pagoda {

inline bool runs_before(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  return std::tuple(a->priority(), a->arrival()) < std::tuple(b->priority(), b->arrival());
}

// Inserts into a container that is in the order.
template <typename Sequences>
void insert_in_order(Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place = std::upper_bound(sequences.begin(), sequences.end(), sequence, runs_before);
  sequences.insert(place, std::move(sequence));
}

class WaitingQueue {
 public:
  explicit WaitingQueue(int num_steps_per_turn) : num_steps_per_turn_(num_steps_per_turn) {}

  bool empty() const { return sequences_.empty(); }
  int num_sequences() const { return static_cast<int>(sequences_.size()); }  // without forks
  int num_samples() const { return num_sequences() + num_forks_; }           // with them
  Sequence& head() { return *sequences_.front(); }

  void insert(std::unique_ptr<Sequence> sequence);
  // Takes the head, which is admitted, and notes whether it overtakes others.
  std::unique_ptr<Sequence> pop();

  // Calls change(sequences) with all of them, which it leaves in their order.
  template <typename Change>
  void change(const Change& change);

  // Counts a step. Returns the request that came first of those that wait where others have
  // overtaken it for long enough.
  std::optional<RequestId> end_turn();

 private:
  void count_forks();

  int num_steps_per_turn_;
  std::deque<std::unique_ptr<Sequence>> sequences_;
  int num_forks_ = 0;
  int num_steps_overtaking_ = 0;  // since one overtook others that still wait; 0: none did
};

template <typename Change>
void WaitingQueue::change(const Change& change) {
  change(sequences_);
  count_forks();
}

}  // namespace pagoda
