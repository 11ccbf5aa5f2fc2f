#include "cli/flags/kv_format_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <span>
#include <vector>

#include "core/log.h"
#include "core/nearest_name.h"

namespace pagoda {

namespace {

struct FormatName {
  std::string_view name;
  KvFormat format;
};

constexpr FormatName kVllmNames[] = {{"int8_per_token_head", KvFormat::kInt8},
                                     {"int4_per_token_head", KvFormat::kInt4}};
constexpr FormatName kLlamaCppNames[] = {{"f32", KvFormat::kFloat32},
                                         {"f16", KvFormat::kFloat16},
                                         {"bf16", KvFormat::kBFloat16},
                                         {"q8_0", KvFormat::kInt8},
                                         {"q4_0", KvFormat::kInt4}};

// Names of other engines or other flags, each with the format to use instead.
constexpr FormatName kForeignNames[] = {
    {"float", KvFormat::kFloat32}, {"f32", KvFormat::kFloat32}, {"fp32", KvFormat::kFloat32},
    {"half", KvFormat::kFloat16},  {"f16", KvFormat::kFloat16}, {"fp16", KvFormat::kFloat16},
    {"bf16", KvFormat::kBFloat16}, {"q8_0", KvFormat::kInt8},   {"q8", KvFormat::kInt8},
    {"q5_0", KvFormat::kInt8},     {"q5_1", KvFormat::kInt8},   {"i8", KvFormat::kInt8},
    {"q4_0", KvFormat::kInt4},     {"q4_1", KvFormat::kInt4},   {"q4", KvFormat::kInt4},
    {"iq4_nl", KvFormat::kInt4},   {"i4", KvFormat::kInt4},     {"nvfp4", KvFormat::kInt4},
    {"mxfp4", KvFormat::kInt4},    {"fp4", KvFormat::kInt4},    {"fp4_e2m1", KvFormat::kInt4},
};

std::string_view llama_cpp_name(KvFormat format) {
  for (const FormatName& each : kLlamaCppNames) {
    if (each.format == format) return each.name;
  }
  return {};
}

std::optional<KvFormat> format_of(std::span<const FormatName> names, std::string_view text) {
  for (const FormatName& each : names) {
    if (each.name == text) return each.format;
  }
  return std::nullopt;
}

std::optional<KvFormat> format_of(std::string_view text) {
  for (const KvFormat format : kKvFormats) {
    if (kv_format_name(format) == text) return format;
  }
  return format_of(kVllmNames, text);
}

// Returns the end of an error: what to use instead. name_of: the flag's name of a format; names:
// all that the flag takes.
template <typename NameOf>
std::string instead_of(std::string_view text, NameOf&& name_of,
                       const std::vector<std::string>& names) {
  for (const std::string_view part : {"fp8", "float8", "e4m3", "e5m2"}) {
    if (text.find(part) == std::string_view::npos) continue;
    return fmt::format("; take {}: the same size, and closer", name_of(KvFormat::kInt8));
  }
  const auto foreign = [&]() -> std::optional<KvFormat> {
    if (const auto own = format_of(text)) return own;
    return format_of(kForeignNames, text);
  }();
  if (foreign) return fmt::format("; take {}", name_of(*foreign));
  const auto nearest = nearest_name(text, names);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : "";
}

Status refused(std::string_view text) {
  std::vector<std::string> names = {"auto", "k:int8,v:int4"};
  for (const KvFormat format : kKvFormats) names.emplace_back(kv_format_name(format));
  for (const FormatName& each : kVllmNames) names.emplace_back(each.name);
  const std::string instead = text == "k8v4" || text == "int8,int4"
                                  ? "; take k:int8,v:int4"
                                  : instead_of(text, kv_format_name, names);
  return invalid_argument(
      "expected auto, float32, bfloat16, float16, int8, int4 or two of them as k:int8,v:int4, got "
      "{}{}",
      text, instead);
}

// Reads "k:int8,v:int4"; returns nothing if the text is not a pair of known formats.
std::optional<KvFormats> pair_of(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  std::string_view keys = text.substr(0, comma), values = text.substr(comma + 1);
  if (keys.starts_with("v:")) std::swap(keys, values);
  if (!keys.starts_with("k:") || !values.starts_with("v:")) return std::nullopt;
  const auto k = format_of(keys.substr(2)), v = format_of(values.substr(2));
  if (!k || !v) return std::nullopt;
  return KvFormats{*k, *v};
}

// Returns a validator that accepts what `parse` accepts.
template <typename Parse>
CLI::Validator validator_of(Parse parse) {
  return CLI::Validator(
      [parse](std::string& text) -> std::string {
        const auto parsed = parse(text);
        return parsed.ok() ? std::string() : parsed.status().message();
      },
      "");
}

Result<KvFormats> formats_of_cache_types(const KvFormatFlags& flags) {
  const auto format = [](const std::string& text) -> Result<KvFormat> {
    if (text.empty()) return KvFormat::kBFloat16;
    return parse_cache_type(text);
  };
  PAGODA_ASSIGN_OR_RETURN(const KvFormat keys, format(flags.cache_type_k));
  PAGODA_ASSIGN_OR_RETURN(const KvFormat values, format(flags.cache_type_v));
  return KvFormats{keys, values};
}

}  // namespace

CLI::Validator kv_formats_validator() {
  return validator_of(parse_kv_formats);
}

void add_kv_format_flags(CLI::App& command, KvFormatFlags& flags) {
  command
      .add_option(
          "--kv-cache-dtype", flags.dtype,
          "Format of the KV cache: auto (bfloat16), float32, bfloat16, float16, int8, int4, "
          "or keys' and values' as k:int8,v:int4")
      ->check(kv_formats_validator())
      ->capture_default_str();
  command
      .add_option("--cache-type-k", flags.cache_type_k,
                  "Format of the keys by llama.cpp's names: f32, f16, bf16, q8_0, q4_0")
      ->check(validator_of(parse_cache_type));
  command.add_option("--cache-type-v", flags.cache_type_v, "Format of the values, likewise")
      ->check(validator_of(parse_cache_type));
  command
      .add_option("--kv-cache-dtype-skip-layers", flags.skip_layers,
                  "Layers that stay in bfloat16 beside int8 and int4: sliding_window, none, or "
                  "numbers as 0,1")
      ->check(validator_of(parse_skipped_layers))
      ->capture_default_str();
}

Result<std::optional<KvFormats>> parse_kv_formats(std::string_view text) {
  if (text == "auto") return std::optional<KvFormats>();
  if (const auto format = format_of(text)) return std::optional(KvFormats{*format, *format});
  if (const auto pair = pair_of(text)) return pair;
  return refused(text);
}

Result<KvFormat> parse_cache_type(std::string_view text) {
  if (const auto format = format_of(kLlamaCppNames, text)) return *format;
  std::vector<std::string> names;
  for (const FormatName& each : kLlamaCppNames) names.emplace_back(each.name);
  return invalid_argument("expected f32, f16, bf16, q8_0 or q4_0, got {}{}", text,
                          instead_of(text, llama_cpp_name, names));
}

Result<KvSkippedLayers> parse_skipped_layers(std::string_view text) {
  if (text == "sliding_window") return KvSkippedLayers{.windowed = true, .layers = {}};
  KvSkippedLayers skipped = {.windowed = false, .layers = {}};
  if (text == "none") return skipped;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    int layer = 0;
    const auto read = std::from_chars(at, end, layer);
    if (read.ec != std::errc() || layer < 0) break;
    skipped.layers.push_back(layer);
    if (read.ptr == end) return skipped;
    if (*read.ptr != ',') break;
    at = read.ptr + 1;
  }
  return invalid_argument("expected sliding_window, none or layers as 0,1, got {}", text);
}

Status apply_kv_format_flags(const KvFormatFlags& flags, EngineOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(options.kv_cache_formats, parse_kv_formats(flags.dtype));
  PAGODA_ASSIGN_OR_RETURN(options.kv_cache_skipped_layers, parse_skipped_layers(flags.skip_layers));
  if (flags.cache_type_k.empty() && flags.cache_type_v.empty()) return ok_status();
  if (flags.dtype != "auto") {
    return invalid_argument(
        "[kv cache] expected --kv-cache-dtype or --cache-type-k and --cache-type-v, got both");
  }
  PAGODA_ASSIGN_OR_RETURN(const KvFormats formats, formats_of_cache_types(flags));
  options.kv_cache_formats = formats;
  log_info(
      "kv cache: --cache-type-k {} and --cache-type-v {} are --kv-cache-dtype k:{},v:{} here; int8 "
      "and int4 have a scale a token and head, after a rotation",
      llama_cpp_name(formats.keys), llama_cpp_name(formats.values), kv_format_name(formats.keys),
      kv_format_name(formats.values));
  return ok_status();
}

}  // namespace pagoda
