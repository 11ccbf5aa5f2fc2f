// The families, one source file each. Only these files, family.cc and tests may include this
// header; tools/check_layers.py checks it. Families differ by values and hooks of Family, never by
// branches elsewhere.
#pragma once

#include "model/family.h"

namespace pagoda {

extern const Family kErnie45Moe;
extern const Family kGemma2;
extern const Family kGemma3;
extern const Family kGemma4;
extern const Family kGlm4;
extern const Family kGlm4Moe;
extern const Family kGptOss;
extern const Family kGranite;
extern const Family kGraniteMoe;
extern const Family kGraniteMoeShared;
extern const Family kLaguna;
extern const Family kLlama;
extern const Family kMinistral3;
extern const Family kMistral;
extern const Family kMixtral;
extern const Family kOlmo2;
extern const Family kOlmo3;
extern const Family kOlmoe;
extern const Family kPhi3;
extern const Family kQwen2;
extern const Family kQwen2Moe;
extern const Family kQwen3;
extern const Family kQwen3Moe;
extern const Family kQwen3Vl;
extern const Family kQwen3VlMoe;
extern const Family kSmolLm3;

}  // namespace pagoda
