// ResponseStore: the responses that clients can fetch and continue (/v1/responses), in memory.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "serving/request_memory.h"

namespace pagoda {

// Bounds of one stored response: kKeptBytesPerToken for each token of the context, and this. A
// token has about four bytes of text, so there is room for what templates leave out.
inline constexpr std::size_t kKeptBytesBesides = 64 << 10;
inline constexpr std::size_t kKeptBytesPerToken = 64;  // for each token of the context

// A stored response. Its users share its texts, which count in the memory budget until the last
// user is done (HeldText).
struct StoredResponse {
  SharedText body;  // the response as it was sent
  // The conversation, including this response: a JSON list of chat messages without instructions.
  SharedText messages;
  // The part of `messages` that the request itself sent, without the brackets of a list.
  std::size_t input_offset = 0, num_input_bytes = 0;

  std::size_t num_bytes() const { return body->view().size() + messages->view().size(); }
};

// Thread-safe. Holds at most 64 MB and 4,096 responses. When it is full, the client with the most
// loses its oldest one. So a client loses responses to others only if it has more than an equal
// share.
class ResponseStore {
 public:
  static constexpr std::size_t kMaxBytes = 64 << 20;
  static constexpr std::size_t kMaxResponses = 4096;

  // Keeps a response for `client` (HttpRequest::client) alone. REQUIRES: a new id.
  void put(const std::string& client, const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& client, const std::string& id) const;
  // Erases a response. Returns whether it was there.
  bool erase(const std::string& client, const std::string& id);

 private:
  struct Entry {
    std::string id;
    StoredResponse response;
  };
  struct Client {
    std::list<Entry> entries;  // oldest first
    std::size_t num_bytes = 0;
  };
  struct Place {
    std::string client;
    std::list<Entry>::iterator entry;
  };
  using Places = std::map<std::string, Place>;  // by a response's id

  void drop(Places::iterator place);
  template <typename Measure>
  void drop_of_largest(Measure measure);

  mutable std::mutex mutex_;
  std::map<std::string, Client> clients_;  // clients that have any
  Places places_;
  std::size_t num_bytes_ = 0;
};

}  // namespace pagoda
