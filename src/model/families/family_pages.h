// The families, a page each: known to their pages and to family.cc alone, which check_layers holds to.
// A difference between families is a value or a hook of Family, and no branch elsewhere.
#pragma once

#include "model/family.h"

namespace pagoda {

extern const Family kGemma2;
extern const Family kGemma3;
extern const Family kGemma4;
extern const Family kGlm4;
extern const Family kGranite;
extern const Family kLlama;
extern const Family kMinistral3;
extern const Family kMistral;
extern const Family kOlmo2;
extern const Family kOlmo3;
extern const Family kPhi3;
extern const Family kQwen2;
extern const Family kQwen3;
extern const Family kQwen3Vl;
extern const Family kSmolLm3;

}  // namespace pagoda
