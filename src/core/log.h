// The program's log. A line goes to spdlog's default logger, which `pagoda serve` sets up
// (server/base/log_format.h). Formatting and spdlog's headers are compiled once, in log.cc.
#pragma once

#include <fmt/core.h>

namespace pagoda {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Writes a line if the logger logs its level. Thread-safe.
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, const Args&... arguments) {
  write_log(LogLevel::kDebug, format, fmt::make_format_args(arguments...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, const Args&... arguments) {
  write_log(LogLevel::kInfo, format, fmt::make_format_args(arguments...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, const Args&... arguments) {
  write_log(LogLevel::kWarning, format, fmt::make_format_args(arguments...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, const Args&... arguments) {
  write_log(LogLevel::kError, format, fmt::make_format_args(arguments...));
}

}  // namespace pagoda
