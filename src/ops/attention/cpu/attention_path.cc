#include "ops/attention/cpu/attention_path.h"

namespace pagoda::cpu {

std::string_view attention_path_name(AttentionPath path) {
  switch (path) {
    case AttentionPath::kFloats:
      return "floats";
    case AttentionPath::kCodes:
      return "codes";
    case AttentionPath::kDecoded:
      break;
  }
  return "decoded";
}

AttentionPath attention_path(const KvFormats& formats, std::int64_t /*head_dim*/) {
  const bool has_codes = is_quantized(formats.keys) || is_quantized(formats.values);
  return !has_codes && formats.keys == formats.values ? AttentionPath::kFloats
                                                      : AttentionPath::kDecoded;
}

}  // namespace pagoda::cpu
