// The headers that every answer has besides its content: when it was made, and the number by which
// client and log speak of the request.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace pagoda {

// Returns a time as "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
std::string http_date(std::time_t time);

// Returns the client's own X-Request-Id, if it has 1 to 128 bytes, all of them visible ASCII; else
// a fresh one.
std::string request_id_for(std::string_view clients_own);

struct ResponseLine {
  unsigned version = 11;  // the request's: 10 or 11
  int status = 200;
  bool close = false;  // the connection ends with this answer
  std::string_view request_id;
};
// Returns the status line and the headers that all answers have, each with its line's end.
std::string response_head(const ResponseLine& line);
// Returns all that stands before the body of a response, the headers `more` among it.
std::string whole_head(const ResponseLine& line, const HttpResponse& response,
                       const HttpHeaders& more = {});

void append_headers(std::string& head, const HttpHeaders& headers);

}  // namespace pagoda
