// Any text as config.json and as generation_config.json.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  spdlog::set_level(spdlog::level::off);  // a warning for each input would fill the log
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_hf_config(text, "");
  if (config.ok()) {
    PAGODA_CHECK(config->num_layers() > 0, "a config that was accepted has layers");
    for (const LayerConfig& layer : config->layers) {
      const RopeTable& table = config->rope_tables.at(layer.rope_table);
      PAGODA_CHECK(
          is_rotary_width(table.rotary_dim(), layer.head_dim) &&
              std::ranges::all_of(table.inv_freq, [](float x) { return std::isfinite(x); }),
          "a config that was accepted has rotations of its heads");
    }
    (void)parse_hf_config(text, text);
  }
  (void)parse_hf_generation_defaults(text);
  return 0;
}
