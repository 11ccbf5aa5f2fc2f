// ResponseStore: the responses that clients can fetch and go on with (/v1/responses), in memory.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace pagoda {

struct StoredResponse {
  std::string body;  // as it was answered
  std::string
      messages_json;  // the conversation to its end, as a chat's messages, without instructions
};

// Thread-safe. Takes 64 MB and 4,096 responses at most: the oldest go first.
class ResponseStore {
 public:
  static constexpr std::size_t kMaxBytes = 64 << 20;
  static constexpr std::size_t kMaxResponses = 4096;

  // Keeps a response for `client` (HttpRequest::client) alone. One that is too large for the store
  // is not kept.
  void put(const std::string& client, const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& client, const std::string& id) const;
  // Returns whether it was there.
  bool erase(const std::string& client, const std::string& id);

 private:
  struct Entry {
    std::string client, id;
    StoredResponse response;
    std::size_t num_bytes() const { return response.body.size() + response.messages_json.size(); }
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator entry);

  mutable std::mutex mutex_;
  Entries entries_;  // the oldest one first
  std::map<std::string, Entries::iterator> by_id_;
  std::size_t num_bytes_ = 0;
};

}  // namespace pagoda
