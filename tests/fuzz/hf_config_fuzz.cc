// Any text as config.json and as generation_config.json.
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/hf/hf_config.h"
#include "tests/fuzz/check_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  spdlog::set_level(spdlog::level::off);  // a warning for each input would fill the log
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_hf_config(text, "");
  if (config.ok()) {
    check_config(*config);
    (void)parse_hf_config(text, text);
  }
  (void)parse_hf_generation_defaults(text);
  return 0;
}
