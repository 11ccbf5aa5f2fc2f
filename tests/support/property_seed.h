// Include in a test of properties: RapidCheck then starts from one seed, which it prints, instead
// of a new one each time. RC_PARAMS="seed=..." in the environment takes precedence.
#pragma once

#include <cstdlib>

namespace pagoda::testing {

inline const int kPropertySeed =
    setenv("RC_PARAMS", "seed=20260101 max_success=300", /*overwrite=*/0);

}  // namespace pagoda::testing
