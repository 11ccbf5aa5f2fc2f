#include "ops/attention/cpu/attention_path.h"

namespace pagoda::cpu {

AttentionPath attention_path(const KvFormats& formats, std::int64_t head_dim) {
  if (!is_quantized(formats.keys) && formats.keys == formats.values) return AttentionPath::kFloats;
  const bool are_codes = is_quantized(formats.keys) && is_quantized(formats.values);
  // There are no loops for int4 keys with int8 values: values need no more bits than keys.
  const bool has_loops = formats.keys == KvFormat::kInt8 || formats.values == KvFormat::kInt4;
  if (are_codes && has_loops && head_dim <= kMostCodedDims) return AttentionPath::kCodes;
  return AttentionPath::kDecoded;
}

}  // namespace pagoda::cpu
