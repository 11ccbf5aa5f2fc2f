// BodyBudget: how many bytes of large request bodies may be in memory at a time, over all
// connections. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace pagoda {

class BodyBudget {
 public:
  explicit BodyBudget(std::size_t limit) : limit_(limit) {}

  bool take(std::size_t num_bytes) {
    std::size_t used = used_;
    do {
      if (num_bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + num_bytes));
    return true;
  }
  void release(std::size_t num_bytes) { used_ -= num_bytes; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

// A part of the budget, which it keeps alive; given back at its end. Movable.
class BodyReservation {
 public:
  BodyReservation() = default;
  ~BodyReservation() { release(); }
  BodyReservation(BodyReservation&& other) noexcept
      : budget_(std::move(other.budget_)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}
  BodyReservation& operator=(BodyReservation&& other) noexcept {
    release();
    budget_ = std::move(other.budget_);
    num_bytes_ = std::exchange(other.num_bytes_, 0);
    return *this;
  }

  // Grows to `num_bytes` in all. Returns false if there is not that much left; then it is as large
  // as before.
  bool grow_to(const std::shared_ptr<BodyBudget>& budget, std::size_t num_bytes) {
    if (num_bytes <= num_bytes_) return true;
    if (!budget->take(num_bytes - num_bytes_)) return false;
    budget_ = budget;
    num_bytes_ = num_bytes;
    return true;
  }

 private:
  void release() {
    if (const auto budget = std::move(budget_)) budget->release(num_bytes_);
  }

  std::shared_ptr<BodyBudget> budget_;
  std::size_t num_bytes_ = 0;
};

}  // namespace pagoda
