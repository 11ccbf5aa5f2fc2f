#include "server/page/page.h"

#include <fmt/format.h>

#include "core/sha256.h"
#include "server/base/base64.h"

namespace pagoda {
namespace {

constexpr std::string_view kRootPath = R"(<meta name="root-path" content=")";

// Returns 'sha256-...' of an inline element's text, as in Content Security Policy level 3.
std::string inline_hash(std::string_view html, std::string_view open, std::string_view close) {
  const std::size_t start = html.find(open) + open.size();
  const Sha256Digest digest = sha256(html.substr(start, html.find(close, start) - start));
  return fmt::format("'sha256-{}'",
                     base64({reinterpret_cast<const char*>(digest.data()), digest.size()}));
}

std::string content_security_policy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
      "trusted-types 'none'",
      inline_hash(kPageHtml, "<script>", "</script>"),
      inline_hash(kPageHtml, "<style>", "</style>"));
}

}  // namespace

std::string page_html(std::string_view root_path) {
  std::string html(kPageHtml);
  html.insert(html.find(kRootPath) + kRootPath.size(), root_path);
  return html;
}

HttpResponse page_response(const SharedText& page, bool is_gzip) {
  HttpResponse response{.content_type = "text/html; charset=utf-8"};
  response.headers = {{"Content-Security-Policy", content_security_policy()},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}};
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (is_gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  response.shared_body = page;
  return response;
}

}  // namespace pagoda
