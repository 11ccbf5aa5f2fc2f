// The flags that choose how the KV cache is stored: --kv-cache-dtype, llama.cpp's --cache-type-k and
// --cache-type-v, and --kv-cache-dtype-skip-layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/kv_format.h"
#include "core/status.h"
#include "engine/engine_options.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace pagoda {

struct KvFormatFlags {
  std::string dtype = "auto";
  std::string cache_type_k;  // "": not given
  std::string cache_type_v;
  std::string skip_layers = "sliding_window";
};

void add_kv_format_flags(CLI::App& command, KvFormatFlags& flags);

// Checks a text that parse_kv_formats takes.
CLI::Validator kv_formats_validator();

// Reads "auto" (absent), a KvFormat's name or vLLM's for both keys and values, or a pair as
// "k:int8,v:int4", in either order. kInvalidArgument says what to take instead.
Result<std::optional<KvFormats>> parse_kv_formats(std::string_view text);
// Reads a name of llama.cpp's: f32, f16, bf16, q8_0, q4_0. kInvalidArgument says what to take
// instead.
Result<KvFormat> parse_cache_type(std::string_view text);
// Reads "sliding_window", "none" or "0,1,...".
Result<KvSkippedLayers> parse_skipped_layers(std::string_view text);

// Sets the options that the flags say; a line in the log tells what llama.cpp's names mean.
// kInvalidArgument besides where both --kv-cache-dtype and llama.cpp's flags were given.
Status apply_kv_format_flags(const KvFormatFlags& flags, EngineOptions& options);

}  // namespace pagoda
