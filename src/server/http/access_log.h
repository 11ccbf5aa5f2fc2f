// AccessLog: one line for each request, at the level info: what was asked and how it ended, never a
// query, a prompt, an answer or a key. In JSON its fields are:
// - `request_id`, `method`, `path`, and `status` (null where there was none);
// - `duration_ms` and `bytes`;
// - `client`, where its API key has a name;
// - `ended`, where the request did not end as it should.
//
// Lines go where the process' log goes, which delays no answer (core/log_thread.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "server/base/log_format.h"

namespace pagoda {

class RequestTrace;

struct AccessRecord {
  std::string_view method, path;  // empty where the request could not be read
  int status = 0;                 // 0: no answer was begun
  double seconds = 0;             // from the request's first byte to the answer's last
  std::size_t num_bytes = 0;      // of the answer, that the system took
  std::string_view request_id;
  std::string_view client_name;               // of the API key; empty: none
  std::string_view how_it_ended;              // "": as it should; else in words
  std::shared_ptr<const RequestTrace> trace;  // of a request that is traced
};

// Is told of each record, by whichever thread has answered, whatever the log's level.
using AnswerObserver = std::function<void(const AccessRecord&)>;

// Takes sinks and level of the process' log as they are when it is made. Thread-safe.
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
