#include "core/log.h"

#include <spdlog/spdlog.h>

namespace pagoda {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) {
  if (spdlog::should_log(level_of(level)))
    spdlog::log(level_of(level), fmt::vformat(format, arguments));
}

}  // namespace pagoda
