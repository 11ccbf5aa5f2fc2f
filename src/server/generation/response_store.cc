#include "server/generation/response_store.h"

#include <algorithm>
#include <utility>

namespace pagoda {

void ResponseStore::put(const std::string& client, const std::string& id, StoredResponse response) {
  const std::size_t num_bytes = response.num_bytes();
  std::lock_guard lock(mutex_);
  Client& owner = clients_[client];
  owner.entries.push_back({id, std::move(response)});
  owner.num_bytes += num_bytes;
  num_bytes_ += num_bytes;
  places_[id] = {client, std::prev(owner.entries.end())};
  while (num_bytes_ > kMaxBytes) drop_of_largest([](const Client& each) { return each.num_bytes; });
  while (places_.size() > kMaxResponses)
    drop_of_largest([](const Client& each) { return each.entries.size(); });
}

std::optional<StoredResponse> ResponseStore::find(const std::string& client,
                                                  const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.client != client) return {};
  return found->second.entry->response;
}

bool ResponseStore::erase(const std::string& client, const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.client != client) return false;
  drop(found);
  return true;
}

template <typename Measure>
void ResponseStore::drop_of_largest(Measure measure) {
  const auto most = std::ranges::max_element(
      clients_, {}, [&](const auto& client) { return measure(client.second); });
  drop(places_.find(most->second.entries.front().id));
}

void ResponseStore::drop(Places::iterator place) {
  const auto owner = clients_.find(place->second.client);
  const std::size_t num_bytes = place->second.entry->response.num_bytes();
  num_bytes_ -= num_bytes;
  owner->second.num_bytes -= num_bytes;
  owner->second.entries.erase(place->second.entry);
  if (owner->second.entries.empty()) clients_.erase(owner);
  places_.erase(place);
}

}  // namespace pagoda
