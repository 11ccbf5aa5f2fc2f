// Access control: API keys, the origins of web pages, and the host names in requests.
//
// A browser sends the requests of any page from its user's place in the network. So a page from
// anywhere could reach a server on the user's own machine. Three rules prevent it. Each is checked
// on the header, before anything of a body is read:
//
// - Pages of other origins are refused, whatever they send (Cors). Browsers state a page's origin
//   in each of its requests, and pages can't change that. Programs that are no browsers state none,
//   and are accepted. So pages gain nothing by the content types that need no preflight
//   (text/plain, application/x-www-form-urlencoded, multipart/form-data, none).
// - A body's type is JSON, missing, or the default of `curl -d` (is_json_type). The last two are
//   for people at a shell. They are safe because of the first rule.
// - The host name in the request is one of the server's (AllowedHosts). Otherwise a page could make
//   its own name resolve to this server after it was loaded (DNS rebinding). Its browser would then
//   take both for the same origin. X-Forwarded-Host, a proxy's statement of the host name, is
//   ignored because any client can send it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "server/base/http_message.h"

namespace pagoda {

// An API key that requests may use. Only its digest is kept.
struct ApiKey {
  Sha256Digest digest;  // of the key's bytes
  std::string name;     // the owner's name, for the log; empty: none
};

// A client, as the log and the caches distinguish clients.
struct KnownClient {
  std::string id;    // opaque, of one length for all keys; empty: the server has no keys
  std::string name;  // ApiKey::name
};

// The accepted API keys. Requests send them as "Authorization: Bearer K", or as Anthropic's
// "x-api-key: K". The time does not show where a wrong key differs: it is compared with all keys,
// by whole SHA-256 digests.
class ApiKeys {
 public:
  explicit ApiKeys(std::vector<ApiKey> keys);

  // Returns the client whose key the request has; nullopt if it has no accepted key. Keys of one
  // name belong to one client, so that a new key finds what the old one stored. A key without a
  // name is a client of its own. The empty key is never accepted. If the server has no keys, all
  // requests are of one client without id and name.
  std::optional<KnownClient> client_of(const HttpRequest& request) const;

 private:
  std::vector<ApiKey> keys_;
};

// Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol). "*" allows
// every origin. The server's own is always allowed.
class Cors {
 public:
  explicit Cors(std::vector<std::string> allowed_origins);

  // Returns whether a browser sent the request for a page that may not send it. Sec-Fetch-Site
  // decides if it is there, since a proxy may have changed the Host. Otherwise Origin must match
  // Host. Any page may link to this server, because a page can't read what its link leads to.
  bool refuses(const HttpRequest& request) const;

  // Returns the CORS headers for the answer to `request`; empty without an Origin that is allowed.
  HttpHeaders headers(const HttpRequest& request) const;
  bool is_preflight(const HttpRequest& request) const;
  HttpResponse preflight() const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> allowed_origins_;
  bool allows_all_ = false;
};

// The host names that requests may use: addresses, localhost, names that end in .localhost, and
// `names`. In `names`, "*.example.com" allows all names with that ending, and "*" all names. Case
// does not matter.
class AllowedHosts {
 public:
  explicit AllowedHosts(std::vector<std::string> names);

  // Returns whether a request may use this host. `host` is a Host header, with or without a port.
  // Anything else, such as "localhost:evil.example", is refused. "" is allowed, since browsers
  // always send a host.
  bool allow(std::string_view host) const;

 private:
  std::vector<std::string> names_;  // in lower case
};

// Returns whether a body of that Content-Type is read as JSON.
bool is_json_type(std::string_view content_type);

}  // namespace pagoda
