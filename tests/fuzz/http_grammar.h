// HTTP/1.1 requests from a fuzzer's bytes: most are nearly right, so that they get behind the first
// line; each part may be wrong in the ways that readers of HTTP disagree about.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <functional>
#include <string>

namespace pagoda {

// Draws the body of one request.
using DrawBody = std::function<std::string(FuzzedDataProvider&)>;

// Draws what one client sends: up to four requests, one behind the other, and perhaps some bytes.
std::string draw_http(FuzzedDataProvider& draws, const DrawBody& draw_body);

}  // namespace pagoda
