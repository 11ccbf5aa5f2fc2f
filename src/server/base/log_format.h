// LogFormat: how the lines of the process' log are written.
//
//   text  [2026-11-26 14:33:00.123] [pagoda] [info] listening on http://127.0.0.1:8000
//   json  {"time":"2026-11-26T14:33:00.123Z","level":"info","message":"listening on http://..."}
//
// A request's line has fields of its own in JSON, besides `time` and `level`; see AccessLog.
#pragma once

#include <cstdint>
#include <string_view>

namespace pagoda {

enum class LogFormat : std::uint8_t { kText, kJson };

// The name of a logger for JSON: its messages are members of the line's object.
inline constexpr std::string_view kFieldsLogger = "pagoda_fields";

// Sets the format of all loggers that share the default logger's sinks.
void use_log_format(LogFormat format);

}  // namespace pagoda
