// The flags that choose how the KV cache is stored: --kv-cache-dtype, llama.cpp's --cache-type-k
// and --cache-type-v, and --kv-cache-dtype-skip-layers.
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

// Returns a check that accepts what parse_kv_formats() accepts.
CLI::Validator kv_formats_validator();

// Reads "auto" (absent), a format's name or vLLM's name of it for both keys and values, or a pair
// like "k:int8,v:int4", in either order. kInvalidArgument says what to use instead.
Result<std::optional<KvFormats>> parse_kv_formats(std::string_view text);
// Reads llama.cpp's name of a format: f32, f16, bf16, q8_0, q4_0. kInvalidArgument says what to use
// instead.
Result<KvFormat> parse_cache_type(std::string_view text);
// Reads "sliding_window", "none" or "0,1,...".
Result<KvSkippedLayers> parse_skipped_layers(std::string_view text);

// Sets the options that the flags ask for; a line in the log tells what llama.cpp's names mean.
// kInvalidArgument also if --kv-cache-dtype and a flag of llama.cpp's were both given.
Status apply_kv_format_flags(const KvFormatFlags& flags, EngineOptions& options);

}  // namespace pagoda
