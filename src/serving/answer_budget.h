// AnswerBudget: how many bytes of answers may be in memory at a time, until their clients have
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "core/status.h"

namespace pagoda {

// As JSON and what it is made from, measured: 50 a token, 160 a log-probability of completions, 680
// of chat's.
inline constexpr std::int64_t kAnswerTokenBytes = 64;
inline constexpr std::int64_t kAnswerLogprobBytes = 700;

inline constexpr std::int64_t kMaxHeldAnswerBytes = 256 << 20;
// An answer up to this is small, some hundred tokens: it counts, and is always taken.
inline constexpr std::int64_t kSmallAnswerBytes = 32 << 10;

// Shared by all answers. Thread-safe.
class AnswerBudget {
 public:
  explicit AnswerBudget(std::int64_t limit = kMaxHeldAnswerBytes) : limit_(limit) {}

 private:
  friend class HeldAnswer;

  const std::int64_t limit_;
  std::mutex mutex_;
  std::int64_t num_bytes_ = 0;
};

// One request's part of the budget, given back at its end. Thread-safe.
class HeldAnswer {
 public:
  explicit HeldAnswer(std::shared_ptr<AnswerBudget> budget) : budget_(std::move(budget)) {}
  ~HeldAnswer();
  HeldAnswer(const HeldAnswer&) = delete;
  HeldAnswer& operator=(const HeldAnswer&) = delete;

  // Grows by `num_bytes`. kInvalidArgument where this answer alone would pass the limit,
  // kResourceExhausted where all together would and this one is not small. Then it is as large as
  // before.
  Status grow(std::int64_t num_bytes);
  void release(std::int64_t num_bytes);

 private:
  const std::shared_ptr<AnswerBudget> budget_;
  std::int64_t num_bytes_ = 0;
};

}  // namespace pagoda
