#include "server/response_store.h"

#include <utility>

namespace pagoda {

void ResponseStore::put(const std::string& client, const std::string& id, StoredResponse response) {
  Entry entry = {client, id, std::move(response)};
  if (entry.num_bytes() > kMaxBytes) return;
  std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) drop(found->second);
  num_bytes_ += entry.num_bytes();
  entries_.push_back(std::move(entry));
  by_id_[id] = std::prev(entries_.end());
  while (num_bytes_ > kMaxBytes || entries_.size() > kMaxResponses) drop(entries_.begin());
}

std::optional<StoredResponse> ResponseStore::find(const std::string& client,
                                                  const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->client != client) return {};
  return found->second->response;
}

bool ResponseStore::erase(const std::string& client, const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->client != client) return false;
  drop(found->second);
  return true;
}

void ResponseStore::drop(Entries::iterator entry) {
  num_bytes_ -= entry->num_bytes();
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

}  // namespace pagoda
