#include "server/base/log_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/log.h"
#include "server/http/access_log.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::MatchesRegex;

// Returns the log lines of a warning and of three requests.
std::vector<std::string> lines_of(LogFormat format) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  use_log_format(format);
  log_warning("a \"quoted\" word,\na second line and \xff");
  {
    AccessLog log({}, format);
    log.write({.method = "POST",
               .path = "/v1/a\"b",
               .status = 200,
               .seconds = 0.01234,
               .num_bytes = 5,
               .request_id = "one",
               .client_name = "alice"});
    log.write({.status = 400, .request_id = "two"});
    log.write({.method = "GET",
               .path = "/",
               .request_id = "three",
               .client_name = "bob",
               .how_it_ended = "the client went away"});
  }
  spdlog::set_default_logger(before);
  std::vector<std::string> lines;
  std::istringstream stream(text.str());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(LogFormatTest, EachLineIsAnObjectInJson) {
  const std::vector<std::string> lines = lines_of(LogFormat::kJson);
  ASSERT_EQ(lines.size(), 4u);
  std::vector<json> objects;
  for (const std::string& line : lines) {
    objects.push_back(parse_json(line));
    ASSERT_TRUE(objects.back().is_object()) << line;
    EXPECT_THAT(objects.back().at("time").get<std::string>(),
                MatchesRegex("20..-..-..T..:..:..\\....Z"));
    objects.back().erase("time");
  }
  EXPECT_EQ(objects[0], json({{"level", "warning"},
                              {"message", "a \"quoted\" word,\na second line and \xef\xbf\xbd"}}));
  EXPECT_EQ(objects[1], json({{"level", "info"},
                              {"request_id", "one"},
                              {"method", "POST"},
                              {"path", "/v1/a\"b"},
                              {"status", 200},
                              {"duration_ms", 12.3},
                              {"bytes", 5},
                              {"client", "alice"}}));
  EXPECT_TRUE(objects[2].at("method").is_null() && objects[2].at("path").is_null());
  EXPECT_FALSE(objects[2].contains("ended") || objects[2].contains("client"));
  EXPECT_TRUE(objects[3].at("status").is_null());
  EXPECT_EQ(objects[3].at("ended"), "the client went away");
}

TEST(LogFormatTest, TextIsAsItWas) {
  const std::vector<std::string> lines = lines_of(LogFormat::kText);
  ASSERT_EQ(lines.size(), 5u);  // the warning has two lines
  EXPECT_THAT(lines[2], MatchesRegex("\\[20.* \\[captured\\] \\[info\\] \\[access\\] POST "
                                     "/v1/a\"b 200 12\\.3 ms 5 bytes one client=alice"));
  EXPECT_THAT(lines[3], EndsWith("[access] - - 400 0.0 ms 0 bytes two"));
  EXPECT_THAT(lines[4], EndsWith(" 0 bytes three client=bob, the client went away"));
}

}  // namespace
}  // namespace pagoda
