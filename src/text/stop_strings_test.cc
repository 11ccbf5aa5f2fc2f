#include "text/stop_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace pagoda {
namespace {

StopStrings stop_strings(const std::vector<std::string>& strings) {
  return *StopStrings::create(strings);
}

// The expected match: the first end of any stop string; among those that end there, the longest.
struct Match {
  size_t begin;
  size_t end;
};
std::optional<Match> first_match(std::string_view text, const std::vector<std::string>& strings) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<Match> best;
    for (const std::string& string : strings) {
      if (!text.substr(0, end).ends_with(string)) continue;
      const size_t begin = end - string.size();
      if (!best || begin < best->begin) best = Match{begin, end};
    }
    if (best) return best;
  }
  return std::nullopt;
}

// Returns the length of the longest suffix that is a prefix of a stop string.
size_t num_to_hold(std::string_view text, const std::vector<std::string>& strings) {
  for (size_t length = text.size(); length > 0; --length) {
    const std::string_view suffix = text.substr(text.size() - length);
    for (const std::string& string : strings) {
      if (std::string_view(string).starts_with(suffix)) return length;
    }
  }
  return 0;
}

std::string random_string(std::mt19937& random, size_t max_length) {
  std::string text(random() % (max_length + 1), 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % 3);
  return text;
}

TEST(StopStringsTest, EqualsTheDefinitionHoweverTheTextIsCut) {
  std::mt19937 random(17);
  int num_stopped = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> strings(1 + random() % 5);
    for (std::string& string : strings) string = random_string(random, 5) + "b";
    const StopStrings prepared = stop_strings(strings);
    const bool include_stop = random() % 2 == 0;
    StopStringMatcher matcher(&prepared, include_stop);
    const std::string text = random_string(random, 25);
    const auto match = first_match(text, strings);

    std::string shown;
    bool stopped = false;
    size_t place = 0;
    while (place < text.size()) {
      const size_t length = random() % 5;
      const auto output = matcher.push(std::string_view(text).substr(place, length));
      place = std::min(place + length, text.size());
      shown += output.text;
      stopped = output.stopped;
      ASSERT_EQ(stopped, match && match->end <= place) << "seed 17, round " << round;
      if (stopped) break;
      const std::string_view pushed = std::string_view(text).substr(0, place);
      ASSERT_EQ(shown, pushed.substr(0, place - num_to_hold(pushed, strings))) << "round " << round;
    }
    num_stopped += stopped;
    if (stopped) {
      EXPECT_EQ(shown, text.substr(0, include_stop ? match->end : match->begin));
      EXPECT_EQ(matcher.push("more").text, "") << "nothing follows a stop";
      EXPECT_TRUE(matcher.push("more").stopped);
      EXPECT_EQ(matcher.flush(), "");
    } else {
      EXPECT_EQ(shown + matcher.flush(), text);
    }
  }
  EXPECT_GT(num_stopped, 1000);
  EXPECT_LT(num_stopped, 4900);
}

TEST(StopStringsTest, NoPartialStopStringLeaks) {
  const StopStrings strings = stop_strings({"\nUser:", "</s>"});
  StopStringMatcher matcher(&strings, /*include_stop=*/false);
  EXPECT_EQ(matcher.push("Hello").text, "Hello");
  EXPECT_EQ(matcher.push("\nUs").text, "");
  EXPECT_EQ(matcher.push("eful").text, "\nUseful");
  EXPECT_EQ(matcher.push("\nUser").text, "");
  const auto last = matcher.push(": hi");
  EXPECT_EQ(last.text, "");
  EXPECT_TRUE(last.stopped);
}

TEST(StopStringsTest, WithoutStopStringsEverythingPasses) {
  const StopStrings none = stop_strings({});
  StopStringMatcher matcher(&none, false);
  const auto output = matcher.push("any text");
  EXPECT_EQ(output.text, "any text");
  EXPECT_FALSE(output.stopped);
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopStringsTest, ManyStopStringsOfOnePrefix) {
  std::vector<std::string> strings;
  for (int i = 0; i < 2000; ++i)
    strings.push_back(std::string(50, 'x') + std::to_string(100000 + i));
  const StopStrings prepared = stop_strings(strings);
  StopStringMatcher matcher(&prepared, /*include_stop=*/true);
  const std::string text = "ab" + std::string(70, 'x') + "101999 rest";
  const auto output = matcher.push(text);
  EXPECT_TRUE(output.stopped);
  EXPECT_EQ(output.text, text.substr(0, text.size() - 5));
}

TEST(StopStringsTest, AnEmptyStopStringIsRefused) {
  const auto strings = StopStrings::create(std::vector<std::string>{"a", ""});
  ASSERT_FALSE(strings.ok());
  EXPECT_EQ(strings.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(strings.status().message(), "[stop] stop[1]: expected a string that is not empty");
}

}  // namespace
}  // namespace pagoda
