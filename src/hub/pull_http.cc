#include "hub/pull_http.h"

#include <curl/curl.h>

#include <charconv>
#include <mutex>
#include <string_view>

namespace pagoda {
namespace {

constexpr long kConnectTimeoutSeconds = 30;
constexpr long kSilenceSeconds = 60;
constexpr long kMaxRedirects = 10;
// The most bytes of one response's header. libcurl keeps all of it, and reports a line above 100 KB
// as a lack of memory.
constexpr std::size_t kMaxHeaderBytes = 64 << 10;

// Calls libcurl's global set-up once per process, because it is not thread-safe.
void start_libcurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Status status_of(long http_status, const std::string& url) {
  switch (http_status) {
    case 401:
    case 403:
      return invalid_argument(
          "[pull] {}: HTTP {}: the model does not exist or asks for access; HF_TOKEN gives a token",
          url, http_status);
    case 404:
      return not_found("[pull] {}: HTTP 404: there is no such model, revision or file", url);
    default:
      break;
  }
  if (http_status == 429 || http_status >= 500) {
    return unavailable("[pull] {}: HTTP {}", url, http_status);
  }
  return data_loss("[pull] {}: expected HTTP 200 or 206, got {}", url, http_status);
}

// Returns the offset of the first byte in "bytes 100-199/1000", or -1.
std::int64_t content_range_start(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  std::int64_t start = -1;
  if (!value.starts_with(kUnit)) return -1;
  value.remove_prefix(kUnit.size());
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), start);
  return parsed.ec == std::errc() ? start : -1;
}

// Returns whether libcurl refused a header line above its limit, 100 KB. From 8.6 on the code is
// CURLE_TOO_LARGE, which the headers of older versions do not define.
bool is_line_too_long(CURLcode code) {
  constexpr int kTooLarge = 100;
  return code == CURLE_OUT_OF_MEMORY || static_cast<int>(code) == kTooLarge;
}

}  // namespace

struct HttpClient::Transfer {
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  std::unique_ptr<CURL, FreeEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;

  // The state of the current request.
  std::string url;
  std::int64_t offset = 0;
  const Receiver* receiver = nullptr;
  bool started = false;
  std::size_t num_header_bytes = 0;  // of the current response
  Status failure;

  Status long_header() const {
    return data_loss("[pull] {}: expected a header of at most {} bytes, got more", url,
                     kMaxHeaderBytes);
  }
  Status receive(std::span<const std::byte> data);
  Status start_body();
  static std::size_t on_data(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_header(char* line, std::size_t size, std::size_t count, void* self);
};

Status HttpClient::Transfer::start_body() {
  long http_status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &http_status);
  if (http_status == 200) return receiver->start(0);
  if (http_status != 206) return status_of(http_status, url);
  curl_header* range = nullptr;
  const CURLHcode found =
      curl_easy_header(easy.get(), "Content-Range", 0, CURLH_HEADER, -1, &range);
  if (found != CURLHE_OK || content_range_start(range->value) != offset) {
    return data_loss("[pull] {}: expected the bytes from {} on, got {}", url, offset,
                     found == CURLHE_OK ? range->value : "no Content-Range");
  }
  return receiver->start(offset);
}

Status HttpClient::Transfer::receive(std::span<const std::byte> data) {
  if (!started) {
    started = true;
    PAGODA_RETURN_IF_ERROR(start_body());
  }
  return receiver->data(data);
}

std::size_t HttpClient::Transfer::on_data(char* data, std::size_t size, std::size_t count,
                                          void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t length = size * count;
  transfer.failure = transfer.receive(std::as_bytes(std::span(data, length)));
  return transfer.failure.ok() ? length : CURL_WRITEFUNC_ERROR;
}

// Counts the bytes of one line of a header, also in responses that redirect.
std::size_t HttpClient::Transfer::on_header(char* line, std::size_t size, std::size_t count,
                                            void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t length = size * count;
  if (std::string_view(line, length).starts_with("HTTP/")) transfer.num_header_bytes = 0;
  transfer.num_header_bytes += length;
  if (transfer.num_header_bytes <= kMaxHeaderBytes) return length;
  transfer.failure = transfer.long_header();
  return 0;
}

HttpClient::HttpClient(const std::string& bearer_token) : transfer_(std::make_unique<Transfer>()) {
  start_libcurl();
  transfer_->easy.reset(curl_easy_init());
  CURL* easy = transfer_->easy.get();
  PAGODA_CHECK(easy != nullptr, "libcurl gives a handle");
  if (!bearer_token.empty()) {
    // libcurl does not send a header of this name to another host when it follows a redirect.
    const std::string header = "Authorization: Bearer " + bearer_token;
    transfer_->headers.reset(curl_slist_append(nullptr, header.c_str()));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer_->headers.get());
  }
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "pagoda");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectTimeoutSeconds);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_data);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer_.get());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer_.get());
}

HttpClient::~HttpClient() = default;

Status HttpClient::stream(const std::string& url, std::int64_t offset, const Receiver& receiver) {
  Transfer& transfer = *transfer_;
  CURL* easy = transfer.easy.get();
  transfer.url = url;
  transfer.offset = offset;
  transfer.receiver = &receiver;
  transfer.started = false;
  transfer.num_header_bytes = 0;
  transfer.failure = ok_status();
  const std::string range = fmt::format("{}-", offset);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, redirect_protocols(url));
  curl_easy_setopt(easy, CURLOPT_RANGE, offset > 0 ? range.c_str() : nullptr);
  const CURLcode code = curl_easy_perform(easy);
  transfer.receiver = nullptr;
  if (!transfer.failure.ok()) return transfer.failure;
  if (is_line_too_long(code) && !transfer.started) return transfer.long_header();
  if (code != CURLE_OK) return unavailable("[pull] {}: {}", url, curl_easy_strerror(code));
  if (transfer.started) return ok_status();
  // There was no body: an empty file, or an error that has only a status code.
  transfer.receiver = &receiver;
  Status started = transfer.start_body();
  transfer.receiver = nullptr;
  return started;
}

Result<std::string> HttpClient::get(const std::string& url, std::size_t max_bytes) {
  std::string body;
  const Receiver receiver{.start = [](std::int64_t) { return ok_status(); },
                          .data = [&](std::span<const std::byte> data) -> Status {
                            if (data.size() > max_bytes - body.size()) {
                              return data_loss("[pull] {}: expected at most {} bytes, got more",
                                               url, max_bytes);
                            }
                            body.append(reinterpret_cast<const char*>(data.data()), data.size());
                            return ok_status();
                          }};
  PAGODA_RETURN_IF_ERROR(stream(url, 0, receiver));
  return body;
}

const char* redirect_protocols(std::string_view url) {
  return url.starts_with("http://") ? "http,https" : "https";
}

std::string escape_url_path(std::string_view path) {
  constexpr std::string_view kUnescaped =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string escaped;
  for (const char c : path) {
    if (kUnescaped.find(c) != std::string_view::npos) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace pagoda
