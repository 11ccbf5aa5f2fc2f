// The real checkpoint that `make test` fetches.
#pragma once

#include <string>

namespace pagoda {

// Returns the path of the checkpoint. If it is missing, ends the test binary with the command that
// fetches it, since tests that need it cannot pass.
std::string default_model_path();

}  // namespace pagoda
