#include "server/generation/response_store.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

class ResponseStoreTest : public ::testing::Test {
 protected:
  void put(const std::string& client, const std::string& id, std::size_t num_bytes) {
    store_.put(client, id,
               {HeldText::for_good(std::string(num_bytes, 'a')), HeldText::for_good("[]")});
  }
  bool has(const std::string& client, const std::string& id) const {
    return store_.find(client, id).has_value();
  }

  ResponseStore store_;
};

TEST_F(ResponseStoreTest, TheOldestGoFirst) {
  for (int i = 0; i < 5; ++i) put("a", std::to_string(i), 15 * kMegabyte);
  EXPECT_FALSE(has("a", "0"));
  for (const char* id : {"1", "2", "3", "4"}) EXPECT_TRUE(has("a", id)) << id;
}

TEST_F(ResponseStoreTest, OneClientsResponsesTakeNoRoomFromAnothers) {
  put("a", "first", 1000);
  put("b", "half", ResponseStore::kMaxBytes / 2 - kMegabyte);
  for (int i = 0; i < 20; ++i) put("c", "large" + std::to_string(i), 10 * kMegabyte);
  EXPECT_TRUE(has("a", "first"));
  EXPECT_TRUE(has("b", "half"));
  EXPECT_TRUE(has("c", "large19"));
  EXPECT_FALSE(has("c", "large0"));
}

TEST_F(ResponseStoreTest, ManySmallOnesTakeNoPlacesFromAnothers) {
  put("a", "first", 10);
  for (std::size_t i = 0; i < ResponseStore::kMaxResponses + 10; ++i)
    put("b", std::to_string(i), 10);
  EXPECT_TRUE(has("a", "first"));
  EXPECT_FALSE(has("b", "10"));
  EXPECT_TRUE(has("b", "11"));
}

TEST_F(ResponseStoreTest, WhoeverUsesOneSharesIt) {
  put("a", "1", 1000);
  const auto first = store_.find("a", "1"), second = store_.find("a", "1");
  EXPECT_EQ(first->body, second->body);
  EXPECT_TRUE(store_.erase("a", "1"));
  EXPECT_FALSE(store_.erase("a", "1"));
  EXPECT_EQ(first->body->view().size(), 1000u);
}

}  // namespace
}  // namespace pagoda
