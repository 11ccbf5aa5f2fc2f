#include "ops/kv_write/kv_write.h"

#include <algorithm>
#include <type_traits>

#include "backend/cpu/cpu_exec.h"
#include "ops/kv_write/kv_writer_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_write/kv_write_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/kv_write/kv_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using DWords = hn::RebindToUnsigned<D>;
using VWords = hn::Vec<DWords>;

HWY_INLINE VWords word(std::uint32_t value) {
  return hn::Set(DWords(), value);
}

// Rounds each lane as to_bf16() and to_f16() of core/half.h do: to the same bits, also of NaNs.
HWY_INLINE VWords narrowed(bf16 /*type*/, VWords bits) {
  const VWords odd = hn::And(hn::ShiftRight<16>(bits), word(1));
  const VWords rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, word(0x7fff))));
  const VWords quiet = hn::Or(hn::ShiftRight<16>(bits), word(0x40));
  const auto is_nan = hn::Gt(hn::And(bits, word(0x7fffffff)), word(0x7f800000));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

HWY_INLINE VWords narrowed(f16 /*type*/, VWords bits) {
  const D d;
  const DWords words;
  const VWords magnitude = hn::And(bits, word(0x7fffffff));
  const VWords odd = hn::And(hn::ShiftRight<13>(magnitude), word(1));
  const VWords normal =
      hn::ShiftRight<13>(hn::Sub(hn::Add(magnitude, hn::Add(odd, word(0xfff))), word(0x38000000)));
  const auto half = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f));
  const VWords subnormal = hn::Sub(hn::BitCast(words, half), word(0x3f000000));
  const VWords finite = hn::IfThenElse(hn::Lt(magnitude, word(0x38800000)), subnormal, normal);
  const VWords special =
      hn::IfThenElse(hn::Gt(magnitude, word(0x7f800000)), word(0x7e00), word(0x7c00));
  const VWords sign = hn::And(hn::ShiftRight<16>(bits), word(0x8000));
  return hn::Or(sign, hn::IfThenElse(hn::Lt(magnitude, word(0x477ff000)), finite, special));
}

template <typename T>
HWY_INLINE void narrow(const float* from, std::int64_t count, T* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  constexpr std::int64_t kLanes = hn::MaxLanes(D());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VWords bits = hn::BitCast(DWords(), hn::LoadU(D(), from + i));
    hn::StoreU(hn::TruncateTo(d16, narrowed(T(), bits)), d16,
               reinterpret_cast<std::uint16_t*>(to + i));
  }
  for (; i < count; ++i) to[i] = from_float<T>(from[i]);
}

HWY_INLINE void narrow(const float* from, std::int64_t count, float* to) {
  std::copy_n(from, count, to);
}

template <typename T>
void write_tokens(const Tensor& entries, const std::int32_t* slots, std::int64_t begin,
                  std::int64_t end, T* cache) {
  const std::int64_t heads = entries.extent(1), head_dim = entries.extent(2);
  const float* const values = entries.data<float>();
  for (std::int64_t t = begin; t < end; ++t) {
    if (slots[t] < 0) continue;
    const float* from = values + t * entries.stride(0);
    T* to = cache + slots[t] * heads * head_dim;
    if (entries.stride(1) == head_dim) {
      narrow(from, heads * head_dim, to);
      continue;
    }
    for (std::int64_t h = 0; h < heads; ++h, from += entries.stride(1), to += head_dim) {
      narrow(from, head_dim, to);
    }
  }
}

void encode_tokens(const Tensor& entries, const std::int32_t* slots, std::int64_t begin,
                   std::int64_t end, const KvEntries& cache, float* memory) {
  const std::int64_t heads = entries.extent(1), head_dim = entries.extent(2);
  const std::int64_t block_size = cache.elements.extent(1), num_scales = cache.scales.extent(2);
  const std::int64_t entry_bytes = cache.entry_bytes();
  const KvFormat format = cache.format;
  for (std::int64_t t = begin; t < end; ++t) {
    if (slots[t] < 0) continue;
    const std::int64_t block = slots[t] / block_size, offset = slots[t] % block_size;
    const float* from = entries.data<float>() + t * entries.stride(0);
    std::byte* to = cache.elements.first_byte() + slots[t] * heads * entry_bytes;
    bf16* scales = cache.scales.data<bf16>() + block * heads * num_scales * block_size + offset;
    for (std::int64_t h = 0; h < heads; ++h, from += entries.stride(1), to += entry_bytes) {
      bf16 found[2];
      encode_entry(format, from, head_dim, memory, to, found);
      for (std::int64_t i = 0; i < num_scales; ++i, scales += block_size) *scales = found[i];
    }
  }
}

// Writes tokens [begin, end) of entries [tokens, kv_heads, head_dim] into their slots of `cache`.
// memory: coding_floats(head_dim) floats, used if the cache has codes.
void write_entries(const Tensor& entries, const std::int32_t* slots, std::int64_t begin,
                   std::int64_t end, const KvEntries& cache, float* memory) {
  switch (cache.format) {
    case KvFormat::kFloat32:
      return write_tokens(entries, slots, begin, end, cache.elements.data<float>());
    case KvFormat::kBFloat16:
      return write_tokens(entries, slots, begin, end, cache.elements.data<bf16>());
    case KvFormat::kFloat16:
      return write_tokens(entries, slots, begin, end, cache.elements.data<f16>());
    case KvFormat::kInt8:
    case KvFormat::kInt4:
      return encode_tokens(entries, slots, begin, end, cache, memory);
  }
}

// Returns the floats of memory that write_entries() needs.
std::int64_t memory_floats(std::int64_t head_dim) {
  return coding_floats(head_dim);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(write_entries);
HWY_EXPORT(memory_floats);

namespace {

// The fewest elements of keys worth a fork: fewer are written in less time than waking workers
// takes.
constexpr std::int64_t kGrainElements = 16384;
constexpr std::int64_t kGrainCodes = 4096;

}  // namespace

KvWriter::KvWriter(Exec& exec, const KvView& view, const StepBatch& batch)
    : view_(view), slots_(batch.slot_mapping.data<std::int32_t>()) {
  const std::int64_t floats = HWY_DYNAMIC_DISPATCH(memory_floats)(view.head_dim());
  memory_ = exec.allocate(DType::kFloat32, {exec.num_threads(), floats});
}

void KvWriter::write(const Tensor& k, const Tensor& v, std::int64_t begin, std::int64_t end,
                     int thread) const {
  const auto write_entries = HWY_DYNAMIC_DISPATCH(write_entries);
  float* const own = memory_.data<float>() + thread * memory_.stride(0);
  write_entries(k, slots_, begin, end, view_.keys, own);
  write_entries(v, slots_, begin, end, view_.values, own);
}

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const std::int64_t width = view.num_kv_heads() * view.head_dim();
  const bool has_codes = is_quantized(view.keys.format) || is_quantized(view.values.format);
  const std::int64_t grain =
      std::max<std::int64_t>((has_codes ? kGrainCodes : kGrainElements) / width, 1);
  const KvWriter writer(exec, view, batch);
  pool_of(exec).parallel_for(k.extent(0), grain,
                             [&](std::int64_t begin, std::int64_t end, int thread) {
                               writer.write(k, v, begin, end, thread);
                             });
  return view;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
