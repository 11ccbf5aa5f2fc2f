// encode_kv_entry() of quant/kv_entry.h in vectors, compiled for each target; the same bits.
#if defined(PAGODA_KV_CODES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_KV_CODES_INL_H
#undef PAGODA_KV_CODES_INL_H
#else
#define PAGODA_KV_CODES_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/kv_format.h"
#include "hwy/highway.h"
#include "ops/kv_write/kv_rotation-inl.h"
#include "quant/kv_int4.h"
#include "quant/kv_int8.h"
#include "quant/kv_scale.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace codes {
namespace hn = hwy::HWY_NAMESPACE;

using D = rotation::D;
using V = rotation::V;
using DWords = hn::RebindToUnsigned<D>;
using rotation::kLanes;

// Copies an entry to `padded`, numbers below kLeastKvMagnitude as 0.
HWY_INLINE void copy_entry(const float* entry, std::int64_t head_dim, float* padded) {
  const D d;
  std::int64_t i = 0;
  const auto copy = [&](const float* from) HWY_ATTR {
    const V x = hn::LoadU(d, from);
    const auto is_small = hn::Lt(hn::Abs(x), hn::Set(d, kLeastKvMagnitude));
    hn::StoreU(hn::IfThenZeroElse(is_small, x), d, padded + i);
  };
  for (; i + kLanes <= head_dim; i += kLanes) copy(entry + i);
  if (i == head_dim) return;
  HWY_ALIGN float rest[kLanes] = {};
  std::copy_n(entry + i, head_dim - i, rest);
  copy(rest);
}

// Loads a vector from x [count]; lanes past the end get x[0].
HWY_INLINE V load_entry(const float* x, std::int64_t i, std::int64_t count) {
  const D d;
  const V loaded = hn::LoadU(d, x + i);
  if (HWY_LIKELY(i + kLanes <= count)) return loaded;
  return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(count - i)), loaded,
                        hn::Set(d, x[0]));
}

// Returns the bits of the largest magnitude of x [count]. A NaN counts as the largest.
HWY_INLINE std::uint32_t largest_magnitude(const float* x, std::int64_t count) {
  const DWords words;
  auto most = hn::Zero(words);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const auto bits = hn::BitCast(words, load_entry(x, i, count));
    most = hn::Max(most, hn::And(bits, hn::Set(words, 0x7fffffffu)));
  }
  return hn::GetLane(hn::MaxOfLanes(words, most));
}

// Returns the nearest integers within [least, most].
HWY_INLINE auto round_codes(V x, float least, float most) {
  const D d;
  return hn::NearestInt(hn::Min(hn::Max(x, hn::Set(d, least)), hn::Set(d, most)));
}

// Stores the first `count` lanes, or all if there are fewer, as bytes.
template <typename T, class VInt>
HWY_INLINE void store_bytes(VInt codes, std::int64_t count, T* to) {
  const hn::Rebind<T, D> bytes;
  const auto narrow = hn::DemoteTo(bytes, codes);
  if (HWY_LIKELY(count >= kLanes)) return hn::StoreU(narrow, bytes, to);
  HWY_ALIGN T rest[kLanes];
  hn::StoreU(narrow, bytes, rest);
  std::memcpy(to, rest, count);
}

// Encodes x [count], padded to whole vectors, as encode_kv_int8() does.
HWY_INLINE bf16 encode_int8(const float* x, std::int64_t count, std::int8_t* to) {
  const D d;
  const std::uint32_t largest = largest_magnitude(x, count);
  if (largest >= 0x7f800000u || largest == 0) {
    std::memset(to, 0, count);
    return largest == 0 ? bf16{0} : kKvNaN;
  }
  const bf16 scale = kv_scale_above(std::bit_cast<float>(largest) * (1.0f / 127));
  const V reciprocal = hn::Set(d, kv_reciprocal(scale));
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const V code = hn::Mul(hn::LoadU(d, x + i), reciprocal);
    store_bytes(round_codes(code, -127, 127), count - i, to + i);
  }
  return scale;
}

// Writes code 0 for each of `count` dimensions.
HWY_INLINE KvInt4Scales no_codes(KvInt4Scales scales, std::int64_t count, std::uint8_t* to) {
  std::memset(to, 0, count / 2);
  return scales;
}

// Encodes x [count], padded to whole vectors and one more, as encode_kv_int4() does.
HWY_INLINE KvInt4Scales encode_int4(const float* x, std::int64_t count, std::uint8_t* to) {
  const D d;
  if (largest_magnitude(x, count) >= 0x7f800000u) return no_codes({kKvNaN, kKvNaN}, count, to);
  V low = hn::Set(d, x[0]), high = low;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const V own = load_entry(x, i, count);
    low = hn::Min(low, own);
    high = hn::Max(high, own);
  }
  const float least = hn::GetLane(hn::MinOfLanes(d, low));
  const bf16 minimum = least == 0 ? bf16{0} : to_bf16(least);
  const float bottom = to_float(minimum), span = hn::GetLane(hn::MaxOfLanes(d, high)) - bottom;
  if (!std::isfinite(bottom) || !std::isfinite(span)) return no_codes({kKvNaN, kKvNaN}, count, to);
  if (span <= 0) return no_codes({{0}, minimum}, count, to);
  const bf16 scale = to_bf16(span * (1.0f / 15));
  const V reciprocal = hn::Set(d, kv_reciprocal(scale)), base = hn::Set(d, bottom);
  const auto code_of = [&](std::int64_t i) HWY_ATTR {
    return round_codes(hn::Mul(hn::Sub(hn::LoadU(d, x + i), base), reciprocal), 0, 15);
  };
  const std::int64_t half = count / 2;
  for (std::int64_t i = 0; i < half; i += kLanes) {
    store_bytes(hn::Or(code_of(i), hn::ShiftLeft<4>(code_of(i + half))), half - i, to + i);
  }
  return {scale, minimum};
}

}  // namespace codes

// Returns the floats of memory that encode_entry() needs.
constexpr std::int64_t coding_floats(std::int64_t head_dim) {
  return padded_entry(head_dim) + 16;
}

// Encodes an entry [head_dim] as encode_kv_entry() does; `memory` is clobbered.
HWY_INLINE void encode_entry(KvFormat format, const float* entry, std::int64_t head_dim,
                             float* memory, std::byte* to, bf16* scales) {
  codes::copy_entry(entry, head_dim, memory);
  rotate_padded_entry(memory, head_dim);
  if (format == KvFormat::kInt8) {
    scales[0] = codes::encode_int8(memory, head_dim, reinterpret_cast<std::int8_t*>(to));
    return;
  }
  const KvInt4Scales found =
      codes::encode_int4(memory, head_dim, reinterpret_cast<std::uint8_t*>(to));
  scales[0] = found.scale;
  scales[1] = found.minimum;
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
