// The HTTP that pulling needs, by libcurl: reads a small document, and streams a file from any
// offset.
//
// A client keeps its connection open between requests. It follows redirects over http and https
// only, and sends the bearer token only to the host that it is for. A connection that is silent for
// a minute has failed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"

namespace pagoda {

class HttpClient {
 public:
  // Receives the bytes in order. A failed Status ends the transfer, and stream() returns it.
  struct Receiver {
    // Called once before the first byte, with the file offset of the body: the requested one, or 0
    // if the server does not support ranges.
    std::function<Status(std::int64_t offset)> start;
    std::function<Status(std::span<const std::byte>)> data;
  };

  // Makes a client; it sends no token if `bearer_token` is empty.
  explicit HttpClient(const std::string& bearer_token);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Fetches the whole body of a document of at most max_bytes. kUnavailable if a retry may help (no
  // connection, a broken one, 429 and 5xx); kNotFound for 404; kInvalidArgument for 401 and 403.
  Result<std::string> get(const std::string& url, std::size_t max_bytes);

  // Streams the body from `offset` on; errors as above.
  Status stream(const std::string& url, std::int64_t offset, const Receiver& receiver);

 private:
  struct Transfer;
  std::unique_ptr<Transfer> transfer_;
};

// Returns the protocols that a redirect of `url` may use, in libcurl's syntax. An encrypted
// connection is never redirected to one that others on the way can read and change.
const char* redirect_protocols(std::string_view url);

// Returns text as one segment of a URL's path, or several if it has slashes, with unusual
// characters as %XX.
std::string escape_url_path(std::string_view path);

}  // namespace pagoda
