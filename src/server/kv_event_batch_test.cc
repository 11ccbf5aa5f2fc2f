#include "server/kv_event_batch.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace pagoda {
namespace {

using nlohmann::json;

Sha256Digest digest_ending(std::uint8_t last) {
  Sha256Digest digest = {};
  digest[0] = 0xff;  // is no part of the hash
  digest[digest.size() - 8] = 0x80;
  digest.back() = last;
  return digest;
}

std::uint64_t hash_ending(std::uint8_t last) {
  return std::uint64_t{0x80} << 56 | last;
}

RootedCacheEvent stored(std::uint8_t digest, const Sha256Digest& parent, const Sha256Digest& root) {
  return {.event = {.digest = digest_ending(digest), .parent = parent},
          .root = root,
          .tokens = {digest, digest + 1}};
}

json read(const std::vector<RootedCacheEvent>& events, const Sha256Digest& plain_root) {
  const json batch = json::from_msgpack(kv_event_batch(events, plain_root, 1.25));
  EXPECT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch.at(0), 1.25);
  EXPECT_EQ(batch.at(2), 0);
  return batch.at(1);
}

TEST(KvEventBatch, ChainsAndRemovalsAreOneEventEach) {
  const Sha256Digest root = digest_ending(100);
  const auto removed = [](std::uint8_t digest) {
    return RootedCacheEvent{
        .event = {.digest = digest_ending(digest), .kind = CacheEventKind::kRemoved}};
  };
  const json events = read(
      {stored(1, root, root), stored(2, digest_ending(1), root), stored(4, digest_ending(1), root),
       removed(4), removed(2), RootedCacheEvent{.event = {.kind = CacheEventKind::kCleared}},
       RootedCacheEvent{.event = {.kind = CacheEventKind::kCleared}}},
      root);
  const auto block_stored = [](const json& hashes, const json& parent, const json& tokens) {
    return json{{"type", "BlockStored"}, {"block_hashes", hashes}, {"parent_block_hash", parent},
                {"token_ids", tokens},   {"block_size", 2},        {"lora_id", nullptr},
                {"medium", "GPU"},       {"lora_name", nullptr}};
  };
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0], block_stored({hash_ending(1), hash_ending(2)}, nullptr, {1, 2, 2, 3}));
  EXPECT_EQ(events[1], block_stored(json::array({hash_ending(4)}), hash_ending(1), {4, 5}));
  EXPECT_EQ(events[2], (json{{"type", "BlockRemoved"},
                             {"block_hashes", {hash_ending(4), hash_ending(2)}},
                             {"medium", "GPU"}}));
  EXPECT_EQ(events[3], (json{{"type", "AllBlocksCleared"}}));
}

TEST(KvEventBatch, BlocksOfAClientNameItsRoot) {
  const Sha256Digest root = digest_ending(100);
  const json events = read(
      {stored(1, root, root), stored(2, digest_ending(1), root), stored(3, digest_ending(9), root)},
      digest_ending(101));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("extra_keys"), (json{json::array({to_hex(root)}), nullptr}));
  EXPECT_FALSE(events[1].contains("extra_keys"));
}

}  // namespace
}  // namespace pagoda
