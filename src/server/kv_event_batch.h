// Batches of cache events as vLLM publishes them: MessagePack, [seconds since 1970, events, 0], where
// an event is an object with its kind in "type". (vLLM, vllm/distributed/kv_events.py,
// since the middle of 2026. Before, an event was an array.)
#pragma once

#include <span>
#include <string>

#include "kv/cache_events.h"

namespace pagoda {

// Writes the events. Blocks that follow one another become one BlockStored, and removals in a row
// one BlockRemoved. A block's hash is the last eight bytes of its digest, the high byte first.
// `extra_keys` of a prompt's first block names its root, unless it is `plain_root`: routers must not
// take blocks of different clients for one another. unix_s: the batch's time.
std::string kv_event_batch(std::span<const RootedCacheEvent> events, const Sha256Digest& plain_root,
                           double unix_s);

}  // namespace pagoda
