// The stand-in for an op's body on a backend that has none. make_exec() refuses a backend that is
// not built, so none of its ops can be reached.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "core/check.h"

namespace pagoda {

[[noreturn]] inline void absent_op(std::string_view op, std::string_view backend) {
  check_failed(__FILE__, __LINE__, "op_has_body", fmt::format("[{}] {}: no body", op, backend));
}

}  // namespace pagoda
