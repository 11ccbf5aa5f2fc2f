// WaitingQueue: sequences that wait for a place to run, in order: lower priority value first, then
// earlier arrival.
//
// Clients choose their own priority, so it must not starve others. After every `num_steps_per_turn`
// steps in which some sequences overtake others, the waiting request that arrived first moves to
// the front, whatever its priority. So requests of better priority lose one place every few
// seconds.
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

// Inserts into a container that is sorted by runs_before().
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
  int num_samples() const { return num_sequences() + num_forks_; }           // with forks
  Sequence& head() { return *sequences_.front(); }

  void insert(std::unique_ptr<Sequence> sequence);
  // Removes and returns the head, which is admitted. Notes whether it overtakes others.
  std::unique_ptr<Sequence> pop();

  // Calls change(sequences) with all sequences. `change` has to keep them in order.
  template <typename Change>
  void change(const Change& change);

  // Counts a step. Returns the waiting request that arrived first, if others have overtaken for
  // num_steps_per_turn steps.
  std::optional<RequestId> end_turn();

 private:
  void count_forks();

  int num_steps_per_turn_;
  std::deque<std::unique_ptr<Sequence>> sequences_;
  int num_forks_ = 0;
  int num_steps_overtaking_ = 0;  // steps since one overtook others that still wait; 0: none did
};

template <typename Change>
void WaitingQueue::change(const Change& change) {
  change(sequences_);
  count_forks();
}

}  // namespace pagoda
