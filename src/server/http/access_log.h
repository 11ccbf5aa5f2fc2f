// AccessLog: one line for each request, at the level info: what was asked and how it ended. It
// never has a query, a prompt, an answer or a key. In JSON its fields are:
// - `request_id`, `method`, `path`, and `status` (null if there was none);
// - `duration_ms` and `bytes`;
// - `client`, if the API key has a name;
// - `ended`, if the request did not end normally.
//
// The process' log writes the lines, which delays no answer (core/log_thread.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "server/base/log_format.h"

namespace pagoda {

class RequestTrace;

struct AccessRecord {
  std::string_view method, path;  // empty if the request could not be read
  int status = 0;                 // 0: no answer was begun
  double seconds = 0;             // from the request's first byte to the answer's last
  std::size_t num_bytes = 0;      // bytes of the answer that the system took
  std::string_view request_id;
  std::string_view client_name;               // the API key's name; empty: none
  std::string_view how_it_ended;              // in words; "": normally
  std::shared_ptr<const RequestTrace> trace;  // null: the request is not traced
};

// A callback for each record, whatever the log's level. The thread that has answered calls it.
using AnswerObserver = std::function<void(const AccessRecord&)>;

// A log with the sinks and the level that the process' log has when it is made. Thread-safe.
class AccessLog {
 public:
  explicit AccessLog(AnswerObserver observer = {}, LogFormat format = LogFormat::kText);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void write(const AccessRecord& record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
