#include "bench_serve/server_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(ServerUrl, PartsOfAnAddress) {
  struct Case {
    const char* text;
    const char* host;
    const char* port;
    const char* prefix;
  };
  for (const Case& c :
       {Case{"http://127.0.0.1:8000", "127.0.0.1", "8000", ""},
        Case{"http://localhost/", "localhost", "80", ""}, Case{"http://host:1/v1", "host", "1", ""},
        Case{"http://host:1/v1/", "host", "1", ""},
        Case{"http://host:1/a/b/v1", "host", "1", "/a/b"}, Case{"http://[::1]:9", "::1", "9", ""},
        Case{"http://[::1]", "::1", "80", ""}}) {
    const Result<ServerUrl> url = parse_server_url("url", c.text);
    ASSERT_TRUE(url.ok()) << url.status().message();
    EXPECT_EQ(url.value().host, c.host) << c.text;
    EXPECT_EQ(url.value().port, c.port) << c.text;
    EXPECT_EQ(url.value().prefix, c.prefix) << c.text;
  }
  EXPECT_EQ(parse_server_url("url", "http://[::1]:9/x")->text(), "http://[::1]:9/x");
}

TEST(ServerUrl, HttpsHasItsOwnPort) {
  EXPECT_EQ(parse_server_url("url", "https://host/v1")->text(), "https://host:443");
  EXPECT_EQ(parse_server_url("url", "https://host:8443/a")->text(), "https://host:8443/a");
  EXPECT_TRUE(parse_server_url("url", "https://host")->is_https);
  EXPECT_FALSE(parse_server_url("url", "http://host")->is_https);
}

TEST(ServerUrl, WhatIsNoneIsNamed) {
  for (const char* text :
       {"", "localhost:8000", "https://", "httpss://host", "http://", "http://:8000",
        "http://host:", "http://host:x", "http://[::1", "http://[::1]x", "http://host:123456",
        "http://ho st", "http://host/\r\nX: y"}) {
    const Result<ServerUrl> url = parse_server_url("url", text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(url.status().message(), ::testing::HasSubstr("expected http://HOST"));
  }
}

}  // namespace
}  // namespace pagoda
