// RequestMemory: how many bytes of requests may be in memory at a time. Those are requests' bodies,
// what requests leave behind once they have been read, and their answers until the clients have
// them.
//
// Each request has two accounts: one of its body as it comes, one of the rest. Memory counts as
// long as its HeldBytes live. Text that is sent is a HeldText: connections write nothing else, so
// that no answer can leave the budget out.
//
// Bodies grow only while half of the budget is free. So neither bodies that never end keep answers
// out, nor are more requests taken than there is room to answer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace pagoda {

// As JSON and what it is made from, measured: 50 a token, 160 a log-probability of completions, 680
// of chat's.
inline constexpr std::int64_t kAnswerTokenBytes = 64;
inline constexpr std::int64_t kAnswerLogprobBytes = 700;

inline constexpr std::int64_t kMaxRequestMemoryBytes = 160 << 20;
// The most of an account that is small, an answer of some hundred tokens: it counts, and is always
// taken.
inline constexpr std::int64_t kSmallAccountBytes = 32 << 10;
// So is a text that is sent, up to this, whatever else the request holds: an error has its room.
inline constexpr std::int64_t kSmallTextBytes = 8 << 10;

// Returns up to how much of a budget's limit may be taken for a body to grow: its half.
constexpr std::int64_t limit_of_bodies(std::int64_t limit) {
  return limit / 2;
}

// Shared by all requests. Thread-safe.
class RequestMemory {
 public:
  explicit RequestMemory(std::int64_t limit = kMaxRequestMemoryBytes) : limit_(limit) {}

 private:
  friend class MemoryAccount;

  const std::int64_t limit_;
  std::mutex mutex_;
  std::int64_t num_bytes_ = 0;
};

// An account of one request, which its parts keep alive. Thread-safe.
class MemoryAccount {
 public:
  explicit MemoryAccount(std::shared_ptr<RequestMemory> budget)
      : budget_(std::move(budget)), limit_(budget_->limit_) {}
  // Makes the account of a body, which grows while half of the budget is free.
  static std::shared_ptr<MemoryAccount> of_body(std::shared_ptr<RequestMemory> budget);
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

 private:
  friend class HeldBytes;

  MemoryAccount(std::shared_ptr<RequestMemory> budget, std::int64_t limit)
      : budget_(std::move(budget)), limit_(limit) {}
  Status take(std::int64_t num_bytes, bool is_sure);
  void give_back(std::int64_t num_bytes);

  const std::shared_ptr<RequestMemory> budget_;
  const std::int64_t limit_;    // of all accounts together, when this one grows
  std::int64_t num_bytes_ = 0;  // guarded by the budget's mutex
};

// A part of a request's account, given back at its end. Movable; thread-compatible.
class HeldBytes {
 public:
  // REQUIRES: `answer` is not null.
  explicit HeldBytes(std::shared_ptr<MemoryAccount> answer) : answer_(std::move(answer)) {}
  ~HeldBytes() { release(num_bytes_); }
  HeldBytes(HeldBytes&& other) noexcept
      : answer_(other.answer_), num_bytes_(std::exchange(other.num_bytes_, 0)) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    release(num_bytes_);
    answer_ = other.answer_;
    num_bytes_ = std::exchange(other.num_bytes_, 0);
    return *this;
  }

  // Grows by `num_bytes`. kInvalidArgument where this answer alone would pass the limit,
  // kUnavailable where all together would and this one is not small. Then it is as large as before.
  Status grow(std::int64_t num_bytes) { return take(num_bytes, /*is_sure=*/false); }
  void release(std::int64_t num_bytes);
  // Grows or shrinks to `num_bytes` in all. Errors are grow()'s; less always has room.
  Status resize(std::int64_t num_bytes);

 private:
  friend class HeldText;
  Status take(std::int64_t num_bytes, bool is_sure);

  std::shared_ptr<MemoryAccount> answer_;
  std::int64_t num_bytes_ = 0;
};

// A text that counts in the budget once, as long as it has a holder.
class HeldText {
 public:
  // Makes one that counts. Errors are HeldBytes::grow()'s; a text of up to kSmallTextBytes has
  // none.
  static Result<std::shared_ptr<const HeldText>> make(std::shared_ptr<MemoryAccount> answer,
                                                      std::string text);
  // Makes one that counts for nothing: a text that the server has for good.
  static std::shared_ptr<const HeldText> for_good(std::string text);

  std::string_view view() const { return text_; }

 private:
  HeldText(HeldBytes bytes, std::string text) : bytes_(std::move(bytes)), text_(std::move(text)) {}

  const HeldBytes bytes_;
  const std::string text_;
};
using SharedText = std::shared_ptr<const HeldText>;

}  // namespace pagoda
