// Begins a target's part of the cpu attention's files, as Highway's headers do. Besides Highway's
// instructions, a target may have dot products of bfloat16 and of 16-bit integers.
#if defined(PAGODA_ATTENTION_TARGET_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_ATTENTION_TARGET_INL_H
#undef PAGODA_ATTENTION_TARGET_INL_H
#else
#define PAGODA_ATTENTION_TARGET_INL_H
#endif

#include "hwy/highway.h"

#undef PAGODA_ATTENTION_BEFORE_NAMESPACE
#undef PAGODA_HAS_PAIR_DOTS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
// An Exec uses these targets only if the machine has these instructions too (CpuIsa::kAvx512).
#define PAGODA_HAS_PAIR_DOTS 1
#define PAGODA_ATTENTION_BEFORE_NAMESPACE()                    \
  HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16,avx512vnni") \
  static_assert(true, "For requiring trailing semicolon")
#else
#define PAGODA_HAS_PAIR_DOTS 0
#define PAGODA_ATTENTION_BEFORE_NAMESPACE() HWY_BEFORE_NAMESPACE()
#endif

#endif  // the target's pass
