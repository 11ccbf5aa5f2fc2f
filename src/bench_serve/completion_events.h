// CompletionEvents: reads the body of a streamed /v1/completions into a RequestRecord while it
// arrives.
//
// It accepts what OpenAI-compatible servers send: events with empty choices, comments, and errors in
// the middle of a stream. Usage may be in an event of its own, in the last event, or absent.
#pragma once

#include <string>
#include <string_view>

#include "bench_serve/request_record.h"
#include "core/status.h"

namespace pagoda {

class CompletionEvents {
 public:
  // REQUIRES: `record` outlives this. Its num_input_tokens stays if the server does not send the
  // number.
  explicit CompletionEvents(RequestRecord& record) : record_(record) {}

  // Reads bytes that arrived at `now_s`. kInternal: the server reports a failure; kDataLoss: the
  // bytes are not such a stream.
  Status push(std::string_view bytes, double now_s);

  // Ends the body. kDataLoss: the body ended before the answer did.
  Status finish() const;

 private:
  Status take_line(std::string_view line, double now_s);
  Status take_event(std::string_view data, double now_s);

  RequestRecord& record_;
  std::string partial_line_;
  bool ended_ = false;  // a finish reason or [DONE] has arrived
};

// Returns the message of an error body or event in OpenAI's format, on one line. For other texts it
// returns the text's start.
std::string error_message(std::string_view body);

}  // namespace pagoda
