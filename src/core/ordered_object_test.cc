#include "core/ordered_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <compare>
#include <string>

#include "core/json.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> keys_of(const OrderedJson& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(OrderedObject, KeysComeInTheOrderInWhichTheyWereSent) {
  const auto object = parse_ordered_json(R"({"z": 1, "a": {"y": 2, "b": [{"d": 0, "c": 0}]}})");
  EXPECT_EQ(json_text(object), R"({"z":1,"a":{"y":2,"b":[{"d":0,"c":0}]}})");
  EXPECT_EQ(object.at("a").at("y"), 2);
  EXPECT_EQ(object.find(std::string_view("m")), object.end());
}

TEST(OrderedObject, AKeyTwiceKeepsItsPlaceAndTakesItsLastValue) {
  EXPECT_EQ(parse_ordered_json(R"({"a": 1, "b": 2, "a": {"c": 3}})").dump(),
            R"({"a":{"c":3},"b":2})");
}

TEST(OrderedObject, CopiesMovesAndErases) {
  auto object = parse_ordered_json(R"({"c": 1, "a": 2, "b": 3})");
  OrderedJson copy = object;
  EXPECT_EQ(object.erase("a"), 1u);
  EXPECT_EQ(object.erase("a"), 0u);
  object["a"] = 4;
  EXPECT_THAT(keys_of(object), ElementsAre("c", "b", "a"));
  EXPECT_THAT(keys_of(copy), ElementsAre("c", "a", "b"));
  EXPECT_NE(object, copy);
  const OrderedJson moved = std::move(copy);
  EXPECT_EQ(moved, parse_ordered_json(R"({"a": 2, "b": 3, "c": 1})"));
  object = moved;
  object.erase(object.begin());
  EXPECT_THAT(keys_of(object), ElementsAre("a", "b"));
  object.clear();
  object["x"] = 1;
  EXPECT_EQ(json_text(object), R"({"x":1})");
}

// A key that counts comparisons.
struct CountedKey {
  int value = 0;
  static inline int num_comparisons = 0;
  std::strong_ordering operator<=>(const CountedKey& other) const {
    ++num_comparisons;
    return value <=> other.value;
  }
};

TEST(OrderedObject, AKeyIsComparedWithFewOfThoseBeforeIt) {
  constexpr int kCount = 100'000;
  OrderedObject<CountedKey, int, void, void> object;
  CountedKey::num_comparisons = 0;
  for (int i = 0; i < kCount; ++i) object.emplace(CountedKey{i * 7919 % 100'003}, i);
  EXPECT_EQ(object.size(), static_cast<std::size_t>(kCount));
  EXPECT_LT(CountedKey::num_comparisons, kCount * 40);  // per key twice log2(kCount), and a margin
}

}  // namespace
}  // namespace pagoda
