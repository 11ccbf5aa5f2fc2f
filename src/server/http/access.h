// Access control: API keys, the origins of web pages, and the names by which this server is asked.
//
// A browser sends what any page tells it to, with its user's place in the network: a page from
// anywhere reaches a server on the user's own machine. Three rules keep it out, each told of in the
// header, before anything of a body is read:
//
// - Pages of other origins are refused, whatever they send (Cors). Browsers say of every request
//   that a page makes where the page is from, and pages can't change that; a program that is no
//   browser says nothing, and passes. So a page gets nowhere with the content types that need no
//   preflight either (text/plain, application/x-www-form-urlencoded, multipart/form-data, none).
// - A body says that it is JSON, or nothing, or what `curl -d` says by itself (is_json_type).
//   That is for people at a shell, and costs nothing beside the first rule.
// - The name by which the server was asked is its own (AllowedHosts). Else a page's own name could
//   be made to lead here after the page has come, which makes it the same origin to its browser.
//   A proxy's word of the name that it was asked by (X-Forwarded-Host) is not heard, because any
//   client can send it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "server/base/http_message.h"

namespace pagoda {

// A key that requests may bring. Only its digest is kept.
struct ApiKey {
  Sha256Digest digest;  // of the key's bytes
  std::string name;     // whose it is, as the log shows it; empty: it has none
};

// A client that the log and the caches tell from others.
struct KnownClient {
  std::string id;    // opaque, of one length for all that bring keys; empty: no key is asked for
  std::string name;  // ApiKey::name
};

// "Authorization: Bearer K", or Anthropic's "x-api-key: K", against the accepted keys. The time it
// takes tells nothing of where a wrong key differs: keys are compared by their SHA-256 digests, all
// of them, whole.
class ApiKeys {
 public:
  explicit ApiKeys(std::vector<ApiKey> keys);

  // Returns who brings the request; nothing where it brings no key that is accepted. Keys of one
  // name are one client, so that a new key finds what the old one stored; a key without a name is a
  // client of its own. The empty key is never accepted. Where there are no keys everybody is the
  // same client, without id and name.
  std::optional<KnownClient> client_of(const HttpRequest& request) const;

 private:
  std::vector<ApiKey> keys_;
};

// Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol). "*" allows
// every origin. The server's own is always allowed.
class Cors {
 public:
  explicit Cors(std::vector<std::string> allowed_origins);

  // Returns whether a browser sent it for a page that may not ask. Sec-Fetch-Site decides where
  // there is one, since a proxy may have changed the Host; else the Origin, beside the Host. A link
  // to this server, which shows what it leads to and tells the page nothing, may be anywhere.
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

// By which names the server may be asked: addresses, localhost and what ends with .localhost, and
// `names`, of which "*.example.com" stands for what ends so and "*" for all. Case does not matter.
class AllowedHosts {
 public:
  explicit AllowedHosts(std::vector<std::string> names);

  // Returns whether a request may name this host. `host` is a Host header, with or without a port;
  // what is neither, as "localhost:evil.example", is refused. "" passes: browsers always send one.
  bool allow(std::string_view host) const;

 private:
  std::vector<std::string> names_;  // in lower case
};

// Returns whether a body of that Content-Type is read as JSON.
bool is_json_type(std::string_view content_type);

}  // namespace pagoda
