// Rare odd choices among a fuzzer's usual ones, for the grammars that compose requests.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

namespace pagoda {

// Draws whether a part is odd, one time in sixteen.
inline bool is_odd(FuzzedDataProvider& draws) {
  return draws.ConsumeIntegralInRange(0, 15) == 15;
}

}  // namespace pagoda
