// ResponseStore: the responses that clients can fetch and go on with (/v1/responses), in memory.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "serving/request_memory.h"

namespace pagoda {

// Bounds of what is kept of one response: as much as a prompt and its answer may be, and this
// besides. A token has some four bytes of text; what templates leave out has room, too.
inline constexpr std::size_t kKeptBytesBesides = 64 << 10;
inline constexpr std::size_t kKeptBytesPerToken = 64;  // of the context

// All users of a stored response share its texts, which count (HeldText) until the last is done.
struct StoredResponse {
  SharedText body;  // as it was answered
  // The conversation to its end, as a JSON list of a chat's messages, without instructions.
  SharedText messages;

  std::size_t num_bytes() const { return body->view().size() + messages->view().size(); }
};

// Thread-safe. Takes 64 MB and 4,096 responses at most. The client who has the most of them loses
// its oldest one first: no client loses any to others before having more than an equal share.
class ResponseStore {
 public:
  static constexpr std::size_t kMaxBytes = 64 << 20;
  static constexpr std::size_t kMaxResponses = 4096;

  // Keeps a response for `client` (HttpRequest::client) alone. REQUIRES: a new id.
  void put(const std::string& client, const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& client, const std::string& id) const;
  // Returns whether it was there.
  bool erase(const std::string& client, const std::string& id);

 private:
  struct Entry {
    std::string id;
    StoredResponse response;
  };
  struct Client {
    std::list<Entry> entries;  // the oldest one first
    std::size_t num_bytes = 0;
  };
  struct Place {
    std::string client;
    std::list<Entry>::iterator entry;
  };
  using Places = std::map<std::string, Place>;  // by id

  void drop(Places::iterator place);
  template <typename Measure>
  void drop_of_largest(Measure measure);

  mutable std::mutex mutex_;
  std::map<std::string, Client> clients_;  // those who have any
  Places places_;
  std::size_t num_bytes_ = 0;
};

}  // namespace pagoda
