// The real checkpoint that `make test` has fetched.
#pragma once

#include <string>

namespace pagoda {

// Ends the test binary with the command that fetches it where it is not there: a test that needs it
// cannot pass without.
std::string default_model_path();

}  // namespace pagoda
