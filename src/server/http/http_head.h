// The status line and headers of answers. Every answer has its date, and an id by which client and
// log refer to the request.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "server/base/http_message.h"

namespace pagoda {

// Returns a time as "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
std::string http_date(std::time_t time);

// Returns the client's own X-Request-Id, if it has 1 to 128 bytes, all of them visible ASCII;
// otherwise a new id.
std::string request_id_for(std::string_view clients_own);

struct ResponseLine {
  unsigned version = 11;  // the request's: 10 or 11
  int status = 200;
  bool close = false;  // the connection is closed after this answer
  std::string_view request_id;
};
// Returns all that comes before the body of a response, including the headers `more`.
std::string whole_head(const ResponseLine& line, const HttpResponse& response,
                       const HttpHeaders& more = {});
// Returns all that comes before a stream's text, which HTTP/1.1 sends in chunks.
std::string stream_head(const ResponseLine& line, std::string_view content_type,
                        const HttpHeaders& more);
// Returns a part of a stream's text as that HTTP version sends it. HTTP/1.1: as a chunk, and with
// the mark of the end after the last one.
std::string in_chunks(unsigned version, const std::string& text, bool is_last);

}  // namespace pagoda
