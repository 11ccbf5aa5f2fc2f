// Declarations that the C++ wrappers of the Rust crates share; only their .cc files include this
// file.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "pagoda_text_rust/src/lib.rs.h"
#include "rust/cxx.h"
#include "text/sandbox_limits.h"
#include "text/tokenizer.h"

namespace pagoda {

// Disables stack traces in errors of the crates, whatever RUST_BACKTRACE says. A sandbox job that
// is stopped while it captures a trace never releases the lock on traces. Every later error of the
// process would wait for that lock. Set before main() begins, while no other thread reads the
// environment.
inline const bool kErrorsHaveNoTraces = ::setenv("RUST_LIB_BACKTRACE", "0", /*overwrite=*/1) == 0;

struct Tokenizer::Rust {
  ::rust::Box<rust_text::Tokenizer> tokenizer;
};

inline ::rust::Slice<const std::uint8_t> rust_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline rust_text::SandboxLimits rust_limits(const SandboxLimits& limits) {
  return {.num_bytes = limits.num_bytes,
          .num_milliseconds = static_cast<std::uint64_t>(limits.processor_time.count())};
}

// Converts a crate's error to a Status. Its code is `code`, or kUnavailable if the system lacks
// memory or a thread (see LACK in rust/sandbox).
inline Status rust_status(StatusCode code, std::string_view context, const ::rust::Error& error) {
  constexpr std::string_view kLack = "lack: ";
  std::string_view what = error.what();
  if (what.starts_with(kLack)) {
    what.remove_prefix(kLack.size());
    code = StatusCode::kUnavailable;
  }
  return {code, fmt::format("{}{}", context, what)};
}

// Calls the crate and converts its errors, which arrive as exceptions, to a Result.
template <typename Call>
auto call_rust(StatusCode code, std::string_view context, Call&& call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const ::rust::Error& error) {
    return rust_status(code, context, error);
  }
}

}  // namespace pagoda
