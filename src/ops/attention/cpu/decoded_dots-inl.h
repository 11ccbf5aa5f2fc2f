// The cpu attention on keys and values that are decoded first, compiled for each target. A tile of
// one head at a time becomes float32, which float_dots-inl.h multiplies. Decoded values stay
// rotated: the query is rotated before, and the output is rotated back.
#if defined(PAGODA_DECODED_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_DECODED_DOTS_INL_H
#undef PAGODA_DECODED_DOTS_INL_H
#else
#define PAGODA_DECODED_DOTS_INL_H
#endif

#include <algorithm>
#include <span>

#include "hwy/highway.h"
#include "ops/attention/cpu/float_dots-inl.h"
#include "ops/kv_write/kv_rotation-inl.h"
#include "quant/kv_entry.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the factor by which two rotations multiply; 1 if entries are not rotated.
inline float rotation_of(const AttentionCall& call, const CallEntries& entries) {
  if (!is_quantized(entries.format)) return 1;
  return static_cast<float>(kv_rotation_width(call.head_dim));
}

// Writes a row of the output from sums in the order of dimensions [padded_entry(head_dim)], which
// are clobbered. If a sum underflowed, adding 0 makes its zero positive.
inline void end_rotated_row(const AttentionCall& call, float* sums, float total, float* out) {
  const float rotation = rotation_of(call, call.values);
  if (rotation != 1) rotate_padded_entry(sums, call.head_dim);
  const D d;
  const V divisor = hn::Set(d, total * rotation);
  const auto value = [&](std::int64_t i) HWY_ATTR {
    return hn::Add(hn::Div(hn::LoadU(d, sums + i), divisor), hn::Zero(d));
  };
  std::int64_t i = 0;
  for (; i + kLanes <= call.head_dim; i += kLanes) hn::StoreU(value(i), d, out + i);
  if (i >= call.head_dim) return;
  HWY_ALIGN float rest[kLanes];
  hn::Store(value(i), d, rest);
  std::copy_n(rest, call.head_dim - i, out + i);
}

class DecodedCoding {
 public:
  DecodedCoding(const AttentionCall& call, const AttentionPlan::Counts& /*counts*/, float* memory)
      : call_(call), stride_(stride(call)), tile_(memory) {
    std::fill_n(tile_, kTilePositions * stride_, 0.0f);
    rows_ = tile_ + kTilePositions * stride_;
    offsets_ = reinterpret_cast<std::int64_t*>(rows_ + kMaxRows * stride_);
    for (int p = 0; p < kRangePositions; ++p)
      offsets_[p] = p % kTilePositions * stride_ * std::int64_t{sizeof(float)};
  }
  static std::int64_t floats(const AttentionCall& call, const AttentionPlan::Counts& /*counts*/) {
    return (kTilePositions + kMaxRows) * stride(call) + 2 * kRangePositions;
  }
  static std::int64_t key_bytes(const AttentionCall& call) { return call.head_dim * 4; }
  static std::int64_t padded_words(const AttentionCall& call) {
    return (call.head_dim + kLanes - 1) / kLanes * kLanes;
  }
  static std::int64_t num_dims(const AttentionCall& call) { return call.head_dim; }
  static float query_factor(const AttentionCall& call) {
    return score_factor(call) / rotation_of(call, call.keys);
  }

  const float* prepare(const float* query, int row, std::int64_t /*state*/) {
    if (!is_quantized(call_.keys.format)) return query;
    float* const rotated = rows_ + row * stride_;
    std::copy_n(query, call_.head_dim, rotated);
    rotate_padded_entry(rotated, call_.head_dim);
    return rotated;
  }
  void begin(const VisibleRange& /*range*/) {}
  EntryPlaces keys(const VisibleRange& range, int head, int tile) {
    return decode(range, call_.keys, range.offsets, head, tile);
  }
  EntryPlaces values(const VisibleRange& range, int head, int tile) {
    return decode(range, call_.values, range.value_offsets, head, tile);
  }
  NoScoreScales score_scales(int /*head*/, std::int64_t /*state*/, int /*position*/) const {
    return {};
  }
  static constexpr bool kWeighs = false;
  void finish_sums(std::int64_t /*state*/, float* /*sums*/) const {}

  static constexpr bool kEndsRows = true;
  void end_row(const float* sums, float total, float* out) {
    std::copy_n(sums, call_.head_dim, rows_);
    end_rotated_row(call_, rows_, total, out);
  }

 private:
  // Returns the floats from one decoded entry to the next, with room for whole vectors.
  static std::int64_t stride(const AttentionCall& call) { return call.padded_dim(); }

  // Decodes the entries of one head that the item sees in a tile.
  EntryPlaces decode(const VisibleRange& range, const CallEntries& entries,
                     const std::int64_t* offsets, int head, int tile) {
    const std::int64_t kv_head = range.item->first_head + head;
    const int begin = std::max(range.begin, tile);
    const int end = std::min(range.end, tile + kTilePositions);
    const std::byte* const elements = entries.elements + kv_head * entries.entry_bytes;
    for (int p = begin; p < end && !is_quantized(entries.format); ++p)
      widen(entries.format, elements + offsets[p], row_of(p));
    for (int i = 0; i < range.num_scale_runs && is_quantized(entries.format); ++i) {
      const ScaleRun& run = range.scale_runs[i];
      const std::int64_t num_scales = traits_of(entries.format).num_scales;
      const bf16* const scales =
          entries.scales + (run.block * call_.kv_heads + kv_head) * num_scales * call_.block_size +
          run.offset - run.begin;
      for (int p = std::max(begin, run.begin); p < std::min(end, run.end); ++p) {
        const bf16 own[2] = {scales[p], num_scales == 2 ? scales[call_.block_size + p] : bf16{0}};
        decode_kv_entry(entries.format, elements + offsets[p], own,
                        {row_of(p), static_cast<std::size_t>(call_.head_dim)});
      }
    }
    return {reinterpret_cast<const std::byte*>(tile_), offsets_};
  }

  float* row_of(int position) const { return tile_ + position % kTilePositions * stride_; }

  void widen(KvFormat format, const std::byte* entry, float* to) const {
    const auto each = [&]<typename T>(const T* from) {
      for (std::int64_t i = 0; i < call_.head_dim; ++i) to[i] = to_float(from[i]);
    };
    switch (format) {
      case KvFormat::kFloat32:
        std::copy_n(reinterpret_cast<const float*>(entry), call_.head_dim, to);
        return;
      case KvFormat::kBFloat16:
        return each(reinterpret_cast<const bf16*>(entry));
      case KvFormat::kFloat16:
        return each(reinterpret_cast<const f16*>(entry));
      default:
        PAGODA_CHECK(false, "[attention] codes that are widened");
    }
  }

  const AttentionCall& call_;
  const std::int64_t stride_;
  float* tile_;            // [kTilePositions, stride]
  float* rows_;            // [kMaxRows, stride], rotated queries; the first also for an output
  std::int64_t* offsets_;  // [kRangePositions], bytes
};

struct DecodedDots : FloatDots<float> {
  using Coding = DecodedCoding;
  // Entries are not prefetched before they are decoded.
  static constexpr bool kFetchesRuns = false;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
