// HTTP as pulling needs it: read a small document, and stream a file from any offset. libcurl does
// it.
//
// A client keeps its connection open between requests. Redirects are followed, over http and https
// only; the bearer token goes to the host it was given for and to no other. A connection that is
// silent for a minute has failed.
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
  // The bytes come in order. A failed Status ends the transfer and is what stream() returns.
  struct Receiver {
    // Called once before the first byte: the file offset at which the body starts. It is the one
    // asked for, or 0 where the server does not do ranges.
    std::function<Status(std::int64_t offset)> start;
    std::function<Status(std::span<const std::byte>)> data;
  };

  // Makes a client, which sends no token where that is empty.
  explicit HttpClient(const std::string& bearer_token);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Fetches the whole body of a document of at most max_bytes. kUnavailable where trying again may
  // help (no connection, a cut one, 429 and 5xx); kNotFound for 404; kInvalidArgument for 401 and
  // 403.
  Result<std::string> get(const std::string& url, std::size_t max_bytes);

  // Streams the body from `offset` on; errors as above.
  Status stream(const std::string& url, std::int64_t offset, const Receiver& receiver);

 private:
  struct Transfer;
  std::unique_ptr<Transfer> transfer_;
};

// Returns the protocols that a redirect of `url` may lead to, as libcurl lists them: never from an
// encrypted connection to one that others on the way can read and change.
const char* redirect_protocols(std::string_view url);

// Returns text as one segment of a URL's path, or as several where it has slashes: everything
// unusual becomes %XX.
std::string escape_url_path(std::string_view path);

}  // namespace pagoda
