// The page at "/": server/page/index.html with the files beside it, embedded in the binary by
// server/page/embed.cmake.
#pragma once

#include <string>
#include <string_view>

#include "server/base/http_message.h"

namespace pagoda {

extern const std::string_view kPageHtml;

// Returns the page. `root_path`: below which its browser finds the API, "" or such as "/llm".
std::string page_html(std::string_view root_path);

// Answers page_html()'s text with a Content-Security-Policy. Under it nothing runs or loads but the
// page's own script and style. Nor can that script make HTML of a text, by innerHTML or otherwise.
HttpResponse page_response(const SharedText& html);

}  // namespace pagoda
