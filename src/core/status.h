// Status and Result: the return types of every function that can fail. No exception crosses an
// interface of ours.
//
// A message names the object, what was expected and what was found, in one line:
//   [gguf] tensor blk.3.ffn_up.weight: expected 576 x 1536, got 576 x 1024
//
// The design follows leveldb's Status and abseil's StatusOr. Both types are values:
// thread-compatible, freely copied.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace pagoda {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's input is wrong; a request's HTTP status is 400
  kNotFound,           // a file, model or name that does not exist
  kUnsupported,        // well-formed input that this build or machine does not support
  kDataLoss,           // a file that is truncated or contradicts itself
  kResourceExhausted,  // memory, blocks or places in a queue are used up
  kUnavailable,        // the engine or a peer cannot be reached at present
  kCancelled,
  kInternal,  // a programming error that was detected
};

std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // Returns the same failure with context in front: "loading model.gguf: [gguf] tensor ...".
  Status with_context(std::string_view context) const;

  // Returns the same failure with the request's wrong field, and with a code for programs
  // ("context_length_exceeded"). Either may be "".
  Status of_field(std::string_view field, std::string_view reason = "") const;
  const std::string& field() const { return field_; }
  const std::string& reason() const { return reason_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string field_, reason_;
};

inline Status ok_status() {
  return {};
}

template <typename... Args>
Status invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status not_found(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kNotFound, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status data_loss(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kDataLoss, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status resource_exhausted(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kResourceExhausted, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kUnavailable, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status cancelled(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kCancelled, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status internal_error(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInternal, fmt::format(format, std::forward<Args>(args)...)};
}

// A value, or the Status that says why there is none. Reading the value of a failed Result is a
// programming error and ends the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Converts implicitly, like the next constructor, so that `return value;` and `return status;`
  // work.
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    PAGODA_CHECK(!status_.ok(), "a Result made from an ok Status has no value");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    PAGODA_CHECK(ok(), status_.message());
    return *value_;
  }
  const T& value() const& {
    PAGODA_CHECK(ok(), status_.message());
    return *value_;
  }
  // Returns by value, so that `for (x : *f())` does not read a destroyed Result, and `auto& v =
  // *f();` does not compile.
  T value() && {
    PAGODA_CHECK(ok(), status_.message());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define PAGODA_CONCAT_INNER(a, b) a##b
#define PAGODA_CONCAT(a, b) PAGODA_CONCAT_INNER(a, b)

#define PAGODA_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                            \
    if (::pagoda::Status pagoda_status = (expression); !pagoda_status.ok()) return pagoda_status; \
  } while (false)

// PAGODA_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
#define PAGODA_ASSIGN_OR_RETURN(declaration, expression)       \
  auto PAGODA_CONCAT(pagoda_result_, __LINE__) = (expression); \
  if (!PAGODA_CONCAT(pagoda_result_, __LINE__).ok())           \
    return PAGODA_CONCAT(pagoda_result_, __LINE__).status();   \
  declaration = *std::move(PAGODA_CONCAT(pagoda_result_, __LINE__))

}  // namespace pagoda
