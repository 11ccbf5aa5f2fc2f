// The ops that have a body on a backend of this binary.
#pragma once

#include <string_view>

#include "core/dtype.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns whether the op has a body on the backend; false if there is only a stub (absent/). `op`
// is the name of the op's function, such as "rope_angles".
bool op_has_body(std::string_view op, Backend backend);

}  // namespace pagoda
