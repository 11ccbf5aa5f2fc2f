// The page at "/": server/page/index.html with the files beside it, embedded in the binary by
// server/page/embed.cmake.
#pragma once

#include <string>
#include <string_view>

#include "server/base/http_message.h"

namespace pagoda {

extern const std::string_view kPageHtml;

// Returns the page. `root_path`: below it the browser finds the API; "", or a path such as "/llm".
std::string page_html(std::string_view root_path);

// Answers `page`, page_html()'s text or the same by gzip, with a Content-Security-Policy. The policy
// lets only the page's own script and style run or load. The script can't turn text into HTML
// either, by innerHTML or otherwise.
HttpResponse page_response(const SharedText& page, bool is_gzip);

}  // namespace pagoda
