#include "server/kv_event_batch.h"

#include <cstdint>
#include <utility>

#include "core/json.h"

namespace pagoda {
namespace {

constexpr int kDataParallelRank = 0;  // an engine is the only one of its server

std::uint64_t hash_of(const Sha256Digest& digest) {
  std::uint64_t hash = 0;
  for (std::size_t i = digest.size() - sizeof(hash); i < digest.size(); ++i)
    hash = hash << 8 | digest[i];
  return hash;
}

// Returns how many of the first events become one.
std::size_t length_of_run(std::span<const RootedCacheEvent> events) {
  const CacheEventKind kind = events.front().event.kind;
  std::size_t length = 1;
  for (; length < events.size() && kind != CacheEventKind::kCleared; ++length) {
    const RootedCacheEvent& next = events[length];
    if (next.event.kind != kind) break;
    if (kind == CacheEventKind::kStored && next.event.parent != events[length - 1].event.digest)
      break;
  }
  return length;
}

OrderedJson stored(std::span<const RootedCacheEvent> run, const Sha256Digest& plain_root) {
  const RootedCacheEvent& first = run.front();
  const bool begins_prompt = first.event.parent == first.root;
  OrderedJson hashes = OrderedJson::array();
  OrderedJson tokens = OrderedJson::array();
  for (const RootedCacheEvent& each : run) {
    hashes.push_back(hash_of(each.event.digest));
    for (const int token : each.tokens) tokens.push_back(token);
  }
  OrderedJson parent;  // null
  if (!begins_prompt) parent = hash_of(first.event.parent);
  OrderedJson event = {{"type", "BlockStored"},
                       {"block_hashes", std::move(hashes)},
                       {"parent_block_hash", std::move(parent)},
                       {"token_ids", std::move(tokens)},
                       {"block_size", first.tokens.size()},
                       {"lora_id", nullptr},
                       {"medium", "GPU"},
                       {"lora_name", nullptr}};
  if (begins_prompt && first.root != plain_root) {
    OrderedJson keys(run.size(), nullptr);
    keys[0] = OrderedJson::array({to_hex(first.root)});
    event["extra_keys"] = std::move(keys);
  }
  return event;
}

OrderedJson removed(std::span<const RootedCacheEvent> run) {
  OrderedJson hashes = OrderedJson::array();
  for (const RootedCacheEvent& each : run) hashes.push_back(hash_of(each.event.digest));
  return {{"type", "BlockRemoved"}, {"block_hashes", std::move(hashes)}, {"medium", "GPU"}};
}

}  // namespace

std::string kv_event_batch(std::span<const RootedCacheEvent> events, const Sha256Digest& plain_root,
                           double unix_s) {
  OrderedJson list = OrderedJson::array();
  while (!events.empty()) {
    const auto run = events.first(length_of_run(events));
    switch (run.front().event.kind) {
      case CacheEventKind::kStored:
        list.push_back(stored(run, plain_root));
        break;
      case CacheEventKind::kRemoved:
        list.push_back(removed(run));
        break;
      case CacheEventKind::kCleared:
        list.push_back({{"type", "AllBlocksCleared"}});
        break;
    }
    events = events.subspan(run.size());
  }
  std::string batch;
  OrderedJson::to_msgpack(OrderedJson::array({unix_s, std::move(list), kDataParallelRank}), batch);
  return batch;
}

}  // namespace pagoda
