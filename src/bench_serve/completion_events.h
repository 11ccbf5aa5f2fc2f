// CompletionEvents: the body of a streamed /v1/completions as it comes, read into a RequestRecord.
//
// Understands what OpenAI-compatible servers send: events whose choices may be empty, usage in an
// event of its own, in the last one or nowhere, comments, an error in mid-stream.
#pragma once

#include <string>
#include <string_view>

#include "bench_serve/request_record.h"
#include "core/status.h"

namespace pagoda {

class CompletionEvents {
 public:
  // REQUIRES: `record` outlives this. Its num_input_tokens stands where the server tells none.
  explicit CompletionEvents(RequestRecord& record) : record_(record) {}

  // Takes bytes that came at `now_s`. kInternal: the server says that it has failed; kDataLoss:
  // this is no such stream.
  Status push(std::string_view bytes, double now_s);

  // Ends the body. kDataLoss: it ended before the answer did.
  Status finish() const;

 private:
  Status take_line(std::string_view line, double now_s);
  Status take_event(std::string_view data, double now_s);

  RequestRecord& record_;
  std::string partial_line_;
  bool ended_ = false;  // a finish reason, or [DONE]
};

// Returns the message of an error body or event in OpenAI's shape, on one line; else the text's
// start.
std::string error_message(std::string_view body);

}  // namespace pagoda
