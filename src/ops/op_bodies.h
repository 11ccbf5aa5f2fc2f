// The ops that have a body on a backend of this binary.
#pragma once

#include <string_view>

#include "core/dtype.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns whether the op has a body on that backend. `op`: its function, "rope_angles". False where
// a stub stands in (absent/).
bool op_has_body(std::string_view op, Backend backend);

}  // namespace pagoda
