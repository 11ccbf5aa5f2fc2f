// Declarations that the faces of the Rust crates share; only their .cc files include this file.
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

// Errors of the crates take no traces of the stack, whatever RUST_BACKTRACE says. A job of the
// sandbox that is stopped while it takes one would take the lock over all traces with it. Every
// later error of the process would wait for that lock. Set before main() begins, while no thread
// reads the environment.
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

// Makes a Status of the crate's error: of that code, or kUnavailable where the system lacks memory or
// a thread (rust/sandbox has LACK).
inline Status rust_status(StatusCode code, std::string_view context, const ::rust::Error& error) {
  constexpr std::string_view kLack = "lack: ";
  std::string_view what = error.what();
  if (what.starts_with(kLack)) {
    what.remove_prefix(kLack.size());
    code = StatusCode::kUnavailable;
  }
  return {code, fmt::format("{}{}", context, what)};
}

// Makes a call into the crate, whose errors arrive as exceptions, as a Result.
template <typename Call>
auto call_rust(StatusCode code, std::string_view context, Call&& call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const ::rust::Error& error) {
    return rust_status(code, context, error);
  }
}

}  // namespace pagoda
