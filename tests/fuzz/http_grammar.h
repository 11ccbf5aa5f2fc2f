// HTTP/1.1 requests from a fuzzer's bytes. Most are nearly right, so that parsers get past the
// first line; each part may be wrong in the ways that HTTP parsers disagree about.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <functional>
#include <string>

namespace pagoda {

// Draws the body of one request.
using DrawBody = std::function<std::string(FuzzedDataProvider&)>;

// Draws what one client sends: up to four requests in a row, and perhaps some bytes after them.
std::string draw_http(FuzzedDataProvider& draws, const DrawBody& draw_body);

}  // namespace pagoda
