// AttentionPath: by which of its kinds of products the cpu attention goes about a layer's cache.
//
// A row's bits depend on the kind, so that it is a function of what is fixed with the layout: the
// formats and head_dim. Every instruction set has all of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/kv_format.h"
#include "ops/attention/attention.h"

namespace pagoda::cpu {

enum class AttentionPath : std::uint8_t {
  kFloats,   // keys and values of one float format, multiplied as floats
  kCodes,    // codes multiplied as integers
  kDecoded,  // a tile decoded to float32 first: whatever else there is
};

// The most dimensions whose products of a code and a 16-bit number are summed exactly in 32 bits:
// 127 * 32767 * 512 < 2^31.
inline constexpr std::int64_t kMostCodedDims = 512;

// Returns "floats", "codes", "decoded".
std::string_view attention_path_name(AttentionPath path);

// Returns the path of a cache. Thread-safe.
AttentionPath attention_path(const KvFormats& formats, std::int64_t head_dim);

// Computes attention() on a path, which takes any quantised or mixed cache where it is kDecoded;
// tests compare it with the one that attention_path() returns.
Tensor attention_on(AttentionPath path, Exec& exec, const Tensor& q, const KvView& view,
                    const StepBatch& batch, const AttentionArgs& args);

}  // namespace pagoda::cpu
