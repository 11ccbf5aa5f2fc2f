// HTTP as a handler sees it: a whole request in, and one of three kinds of reply out. There are no
// sockets here, and no HTTP library.
//
// A reply that is still being computed is polled: the connection calls poll() once at first and
// again after each call of the request's Wake. So a client that reads slowly delays only its own
// polls. When a client disconnects, its reply is destroyed, which cancels the work.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "server/base/api_error.h"
#include "serving/request_memory.h"

namespace pagoda {

class RequestTrace;

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The part of a request that is kept until its answer ends.
struct RequestOrigin {
  std::string client;                   // HttpRequest::client
  Clock::TimePoint arrival;             // when the request's last byte came
  std::shared_ptr<RequestTrace> trace;  // null: the request is not traced
  // The account of all memory that is kept for the request until its answer has been sent. It is
  // not null when a handler gets it.
  std::shared_ptr<MemoryAccount> held;
  std::string request_id;  // HttpRequest::request_id
};

struct HttpRequest {
  std::string method;   // "GET"
  std::string path;     // without the query
  std::string query;    // after '?', undecoded
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::string client;       // KnownClient::id of its API key; empty: the server has no keys
  std::string client_name;  // KnownClient::name, for the log; empty: none
  std::optional<HeldBytes> held_body;                // counts `body` in the memory budget
  Clock::TimePoint arrival = Clock::system().now();  // when the last byte came
  std::shared_ptr<RequestTrace> trace;               // this and the next: as in RequestOrigin
  std::shared_ptr<MemoryAccount> held = {};
  std::string request_id = {};  // by which client and log refer to the request

  // Returns the value of the first header of that (lower-case) name, or "".
  std::string_view header(std::string_view name) const;
  RequestOrigin origin() const { return {client, arrival, trace, held, request_id}; }
  // Returns whether a client of Anthropic's API sent it, whatever the path.
  bool is_for_anthropic() const { return !header("anthropic-version").empty(); }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;                    // the connection counts it in the memory budget
  SharedText shared_body = {};         // in place of `body`: counted already, once for all users
  std::optional<ApiError> error = {};  // in place of `body`: an error that is not written yet

  std::string_view text() const { return shared_body ? shared_body->view() : body; }
};

struct HttpReply;

// A reply that is still being computed. Calls come one at a time, from any of the server's threads.
class PendingReply {
 public:
  virtual ~PendingReply() = default;
  // Returns the reply once it is there: a response, a stream, or another pending reply.
  virtual std::optional<HttpReply> poll() = 0;
};

// A text/event-stream, or another text, that is sent while it is generated.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual std::string_view content_type() const { return "text/event-stream; charset=utf-8"; }
  // Returns what is sent while no event is ready, so that proxies keep the connection; "": nothing.
  virtual std::string_view keep_alive() const { return ": keep-alive\n\n"; }
  // Returns the events that are ready, formatted; empty if there are none. Called until finished().
  virtual std::string poll() = 0;
  // Returns whether poll() has returned the last events.
  virtual bool finished() const = 0;
  // Returns the events that report an error which ends the stream, of up to kSmallTextBytes. No
  // further call follows.
  virtual std::string last_words(const ApiError& error) = 0;
};

struct HttpReply {
  std::variant<HttpResponse, std::unique_ptr<PendingReply>, std::unique_ptr<EventStream>> content;
  HttpHeaders headers;  // sent besides the content's own headers

  // Replaces a pending reply's content by that of `next`, and adds the headers of `next`.
  void become(HttpReply next);
};

// A callback that asks the connection to poll again. Thread-safe and cheap. It may be kept longer
// than the reply, but no call may be running when the reply is destroyed.
using Wake = std::function<void()>;

// Called on the server's threads, concurrently, when only a request's header has come. Returns the
// answer if the body need not be read, so that no client sends a long body only to be refused.
// Stores in the request who the client is.
using HttpGate = std::function<std::optional<HttpResponse>(HttpRequest&)>;
// Called on the server's threads, concurrently, with whole requests that the gate has accepted.
using HttpHandler = std::function<HttpReply(HttpRequest, Wake)>;

// Returns the text with its ASCII letters in lower case, for comparing names of headers and hosts.
std::string lower_case(std::string_view text);

// Returns the phrase of a status, such as "Not Found" for 404; "" for a status that is never sent.
std::string_view reason_phrase(int status);

}  // namespace pagoda
