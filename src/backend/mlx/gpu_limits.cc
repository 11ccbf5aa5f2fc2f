#include "backend/mlx/gpu_limits.h"

#include <fmt/format.h>
#include <mlx/backend/metal/metal.h>
#include <mlx/memory.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <variant>

namespace pagoda::mlx {
namespace {

namespace mx = ::mlx::core;

// Freed memory that MLX keeps for reuse. A step reuses the memory of the previous step's results,
// so more than a large step's results is of no use.
constexpr std::size_t kCacheBytes = std::size_t{1} << 30;

std::size_t number_of(const char* key) {
  const auto& info = mx::metal::device_info();
  const auto found = info.find(key);
  if (found == info.end()) return 0;
  const auto* number = std::get_if<std::size_t>(&found->second);
  return number != nullptr ? *number : 0;
}

std::size_t working_set() {
  return number_of("max_recommended_working_set_size");
}

}  // namespace

void prepare_gpu() {
  setenv("MLX_MAX_OPS_PER_BUFFER", std::to_string(kMaxOps).c_str(), /*overwrite=*/0);
  setenv("MLX_MAX_MB_PER_BUFFER", std::to_string(kMaxMegabytes).c_str(), /*overwrite=*/0);
  mx::set_cache_limit(std::min(kCacheBytes, working_set() / 8));
  mx::set_wired_limit(working_set());
}

std::int64_t available_gpu_bytes() {
  const std::size_t in_use = mx::get_active_memory();
  return static_cast<std::int64_t>(working_set() - std::min(working_set(), in_use));
}

std::string describe_gpu() {
  const auto& info = mx::metal::device_info();
  const auto found = info.find("device_name");
  const auto* name = found == info.end() ? nullptr : std::get_if<std::string>(&found->second);
  constexpr double kGigabyte = 1e9;
  return fmt::format("{}, {:.1f} GB of {:.1f} recommended for one process",
                     name != nullptr ? *name : "Apple GPU",
                     static_cast<double>(working_set()) / kGigabyte,
                     static_cast<double>(number_of("memory_size")) / kGigabyte);
}

}  // namespace pagoda::mlx
