#include "core/status.h"

#include <cstdio>
#include <cstdlib>

namespace pagoda {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kDataLoss:
      return "data loss";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  Status status = *this;
  status.message_ = fmt::format("{}: {}", context, message_);
  return status;
}

Status Status::of_field(std::string_view field, std::string_view reason) const {
  if (ok()) return *this;
  Status status = *this;
  status.field_ = field;
  status.reason_ = reason;
  return status;
}

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "pagoda: internal error at %s:%d: %s: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace pagoda
