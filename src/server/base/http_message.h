// HTTP as a handler sees it: a whole request in, and one of three kinds of reply out. No socket and
// no library here.
//
// A reply that is still being computed is polled: the connection calls poll() once at first and
// again after each call of the request's Wake. So a client that reads slowly only delays its own
// polls, and one that goes away destroys the reply, which cancels its work.
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

// The part of a request that its answer needs to the end.
struct RequestOrigin {
  std::string client;                   // HttpRequest::client
  Clock::TimePoint arrival;             // of its last byte
  std::shared_ptr<RequestTrace> trace;  // null: it is not traced
  // The account of all that is kept for it until its answer has been sent. Not null for a handler.
  std::shared_ptr<MemoryAccount> held;
};

struct HttpRequest {
  std::string method;   // "GET"
  std::string path;     // without the query
  std::string query;    // after '?', undecoded
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::string client;  // KnownClient::id, by the API key that it brought; empty: none is needed
  std::string client_name;             // KnownClient::name, for the log; empty: it has none
  std::optional<HeldBytes> held_body;  // for as long as the request is kept
  Clock::TimePoint arrival = Clock::system().now();  // of its last byte
  std::shared_ptr<RequestTrace> trace;               // of RequestOrigin, as the next one
  std::shared_ptr<MemoryAccount> held = {};

  // Returns the first header of that (lower-case) name, or "".
  std::string_view header(std::string_view name) const;
  RequestOrigin origin() const { return {client, arrival, trace, held}; }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;                    // counted by the connection, once it has it
  SharedText shared_body = {};         // instead: one that counts already, once for all holders
  std::optional<ApiError> error = {};  // instead: one that is not written yet

  std::string_view text() const { return shared_body ? shared_body->view() : body; }
};

struct HttpReply;

// A reply that is not known yet. Calls come one at a time, from any of the server's threads.
class PendingReply {
 public:
  virtual ~PendingReply() = default;
  // Returns the reply, once it is known: a response, a stream, or another one to wait for.
  virtual std::optional<HttpReply> poll() = 0;
};

// A text/event-stream, or another text, sent as it comes.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual std::string_view content_type() const { return "text/event-stream; charset=utf-8"; }
  // Returns what is sent while nothing is ready, so that proxies keep the connection; "": nothing.
  virtual std::string_view keep_alive() const { return ": keep-alive\n\n"; }
  // Returns events that are ready, formatted; empty if there are none. Called again until then.
  virtual std::string poll() = 0;
  // Returns whether nothing comes after what poll() has returned.
  virtual bool finished() const = 0;
  // Returns the events that tell of an error which ends it, of up to kSmallTextBytes. Nothing is
  // asked of it any more.
  virtual std::string last_words(const ApiError& error) = 0;
};

struct HttpReply {
  std::variant<HttpResponse, std::unique_ptr<PendingReply>, std::unique_ptr<EventStream>> content;
  HttpHeaders headers;  // besides the content's own

  // Takes the content of the reply that a pending one waited for, and adds its headers.
  void become(HttpReply next);
};

// Thread-safe; cheap; asks the connection to poll again. It may be kept for longer than the reply,
// but no call may be under way once the reply is destroyed.
using Wake = std::function<void()>;

// Called on the server's threads, many at a time, with a request of which only the header has come.
// Returns the answer where none of the body need be read, so that no client sends a long body for a
// refusal. It writes into the request who the client is.
using HttpGate = std::function<std::optional<HttpResponse>(HttpRequest&)>;
// Called on the server's threads, many at a time, with whole requests that the gate has let pass.
using HttpHandler = std::function<HttpReply(HttpRequest, Wake)>;

// Returns the text with its ASCII letters in lower case, as names of headers and hosts compare.
std::string lower_case(std::string_view text);

// Returns "Not Found" for 404; "" for a status that nothing here sends.
std::string_view reason_phrase(int status);

}  // namespace pagoda
