// RequestMemory: a budget for the memory that all requests use together. It counts the requests'
// bodies, the data kept after a body has been read, and answers until the clients have received
// them.
//
// Each request has two accounts: one for its body while it arrives, and one for everything else.
// Memory is counted as long as its HeldBytes live. Connections can only send HeldText, so no answer
// can bypass the budget.
//
// A body may grow only while half of the budget is free. So bodies that never end cannot block
// answers, and no more requests are accepted than can be answered.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace pagoda {

// The memory of an answer and its JSON. Measured: 50 bytes a token, 160 for each log-probability of
// completions, 680 for each of chats.
inline constexpr std::int64_t kAnswerTokenBytes = 64;
inline constexpr std::int64_t kAnswerLogprobBytes = 700;

inline constexpr std::int64_t kMaxRequestMemoryBytes = 160 << 20;
// An account of at most this size (an answer of some hundred tokens) is counted, but never refused.
inline constexpr std::int64_t kSmallAccountBytes = 32 << 10;
// A text to be sent of at most this size is never refused either, whatever else the request holds.
// So there is always room for an error message.
inline constexpr std::int64_t kSmallTextBytes = 8 << 10;

// Returns how much of the budget may be in use after a body has grown: half of it.
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

// An account of one request, kept alive by the parts of the request. Thread-safe.
class MemoryAccount {
 public:
  explicit MemoryAccount(std::shared_ptr<RequestMemory> budget)
      : budget_(std::move(budget)), limit_(budget_->limit_) {}
  // Makes the account of a body, which may grow only while half of the budget is free.
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
  const std::int64_t limit_;    // for the sum of all accounts when this one grows
  std::int64_t num_bytes_ = 0;  // guarded by the budget's mutex
};

// A part of a request's account, returned by the destructor. Movable; thread-compatible.
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

  // Grows by `num_bytes`. kInvalidArgument if this account alone would exceed the limit;
  // kUnavailable if all accounts together would and this one is not small. After an error the size
  // is unchanged.
  Status grow(std::int64_t num_bytes) { return take(num_bytes, /*is_sure=*/false); }
  void release(std::int64_t num_bytes);
  // Sets the size to `num_bytes`. Errors are grow()'s; shrinking always succeeds.
  Status resize(std::int64_t num_bytes);

 private:
  friend class HeldText;
  Status take(std::int64_t num_bytes, bool is_sure);

  std::shared_ptr<MemoryAccount> answer_;
  std::int64_t num_bytes_ = 0;
};

// A text that is counted once in the budget, as long as it is referenced.
class HeldText {
 public:
  // Makes a text that is counted. Errors are HeldBytes::grow()'s; a text of up to kSmallTextBytes
  // has none.
  static Result<std::shared_ptr<const HeldText>> make(std::shared_ptr<MemoryAccount> answer,
                                                      std::string text);
  // Makes a text that is not counted, because the server keeps it permanently.
  static std::shared_ptr<const HeldText> for_good(std::string text);

  std::string_view view() const { return text_; }

 private:
  HeldText(HeldBytes bytes, std::string text) : bytes_(std::move(bytes)), text_(std::move(text)) {}

  const HeldBytes bytes_;
  const std::string text_;
};
using SharedText = std::shared_ptr<const HeldText>;

}  // namespace pagoda
