#include "server/http/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

HttpRequest with_header(const std::string& name, const std::string& value) {
  return {.headers = {{name, value}}};
}

TEST(ApiKeys, AcceptsOnlyWholeKeys) {
  const ApiKeys keys({{sha256("secret"), ""}, {sha256("other"), ""}});
  for (const char* good : {"Bearer secret", "bearer other", "Bearer   secret"}) {
    EXPECT_TRUE(keys.client_of(with_header("authorization", good))) << good;
  }
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret",
                          "secret", "Bearer Secret"}) {
    EXPECT_FALSE(keys.client_of(with_header("authorization", bad))) << bad;
  }
  EXPECT_FALSE(keys.client_of({}));
  EXPECT_EQ(ApiKeys({}).client_of({})->id, "");
  EXPECT_FALSE(ApiKeys({{sha256(""), ""}}).client_of({}));
}

TEST(ApiKeys, TellClientsApart) {
  const ApiKeys keys({{sha256("secret"), ""}, {sha256("other"), ""}});
  const auto client_of = [&](const std::string& authorization) {
    return keys.client_of(with_header("authorization", authorization))->id;
  };
  EXPECT_EQ(client_of("Bearer secret"), client_of("bearer  secret"));
  EXPECT_NE(client_of("Bearer secret"), client_of("Bearer other"));
  EXPECT_NE(client_of("Bearer secret"), "");
}

TEST(ApiKeys, OfOneNameAreOneClient) {
  const ApiKeys keys({{sha256("old"), "alice"},
                      {sha256("new"), "alice"},
                      {sha256("other"), "bob"},
                      {sha256("alice"), ""}});
  const auto client_of = [&](const std::string& key) {
    return *keys.client_of(with_header("authorization", "Bearer " + key));
  };
  EXPECT_EQ(client_of("old").name, "alice");
  EXPECT_EQ(client_of("old").id, client_of("new").id);
  EXPECT_EQ(client_of("other").name, "bob");
  EXPECT_NE(client_of("old").id, client_of("other").id);
  EXPECT_EQ(client_of("alice").name, "");
  EXPECT_NE(client_of("old").id, client_of("alice").id);
  // Ids are digests: they show neither key nor name.
  for (const char* key : {"old", "other", "alice"}) EXPECT_EQ(client_of(key).id.size(), 32u) << key;
}

TEST(Cors, AllowsTheOriginsItWasGiven) {
  const Cors some({"https://a.example"});
  EXPECT_THAT(
      some.headers(with_header("origin", "https://a.example")),
      ElementsAre(Pair("Access-Control-Allow-Origin", "https://a.example"), Pair("Vary", "Origin"),
                  Pair("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, X-Seed")));
  EXPECT_THAT(some.headers(with_header("origin", "https://b.example")), IsEmpty());
  EXPECT_THAT(some.headers({}), IsEmpty());
  EXPECT_THAT(Cors({"*"}).headers(with_header("origin", "https://b.example")),
              Contains(Pair("Access-Control-Allow-Origin", "*")));
}

TEST(Cors, AnswersAPreflight) {
  HttpRequest request{
      .method = "OPTIONS",
      .headers = {{"origin", "https://a.example"}, {"access-control-request-method", "POST"}}};
  const Cors cors({"https://a.example"});
  EXPECT_TRUE(cors.is_preflight(request));
  EXPECT_FALSE(cors.refuses(request));
  EXPECT_EQ(cors.preflight().status, 204);
  EXPECT_TRUE(Cors({}).refuses(request));
  request.headers.pop_back();
  EXPECT_FALSE(cors.is_preflight(request));
}

TEST(Cors, PagesOfOtherOriginsAreRefused) {
  const Cors none({});
  for (const char* method : {"POST", "GET", "OPTIONS"}) {
    const auto refuses = [&](HttpHeaders headers) {
      headers.emplace_back("host", "LocalHost:8000");
      return none.refuses({.method = method, .headers = std::move(headers)});
    };
    EXPECT_FALSE(refuses({})) << "no browser";
    EXPECT_FALSE(refuses({{"origin", "http://localhost:8000"}}));
    for (const char* foreign : {"http://localhost:3000", "https://evil.example", "http://localhost",
                                "null", "file://", "http://localhost:8000.evil.example"}) {
      EXPECT_TRUE(refuses({{"origin", foreign}})) << foreign;
    }
    EXPECT_TRUE(refuses({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "no-cors"}}));
    EXPECT_TRUE(refuses({{"sec-fetch-site", "same-site"}}));
    EXPECT_FALSE(refuses({{"sec-fetch-site", "same-origin"}, {"origin", "https://proxy.example"}}));
    EXPECT_FALSE(refuses({{"sec-fetch-site", "none"}, {"sec-fetch-mode", "navigate"}}));
  }
}

TEST(Cors, ALinkMayBeAnywhereAndAFormMayNot) {
  HttpRequest request{
      .method = "GET",
      .headers = {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}}};
  EXPECT_FALSE(Cors({}).refuses(request));
  request.method = "POST";
  EXPECT_TRUE(Cors({}).refuses(request));
}

TEST(Cors, AllowedOriginsPass) {
  const HttpRequest request{
      .method = "POST",
      .headers = {{"origin", "https://a.example"}, {"sec-fetch-site", "cross-site"}}};
  EXPECT_FALSE(Cors({"https://a.example"}).refuses(request));
  EXPECT_FALSE(Cors({"*"}).refuses(request));
  EXPECT_TRUE(Cors({"https://b.example"}).refuses(request));
}

TEST(AllowedHosts, AddressesLocalhostAndGivenNames) {
  const AllowedHosts hosts({"Box", "*.example.com"});
  for (const char* host :
       {"", "127.0.0.1:8000", "10.1.2.3", "[::1]:8000", "[::1]", "localhost:8000", "LOCALHOST",
        "page.localhost", "box:80", "llm.Example.com:8000"}) {
    EXPECT_TRUE(hosts.allow(host)) << host;
  }
  for (const char* host : {"evil.example:8000",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "notlocalhost",
                           "example.com",
                           "evilexample.com",
                           "box.evil.example",
                           "box@evil.example",
                           "[::1",
                           "*",
                           "localhost, box",
                           ":8000",
                           "localhost:evil.example",
                           "localhost:80:evil.example",
                           "localhost:80@evil.example",
                           "127.0.0.1:80.evil.example",
                           "localhost:-1",
                           "[::1]evil.example",
                           "[::1]:80.evil.example",
                           "[localhost]",
                           "[127.0.0.1]",
                           "::1"}) {
    EXPECT_FALSE(hosts.allow(host)) << host;
  }
  EXPECT_TRUE(hosts.allow("localhost:"));
  EXPECT_TRUE(AllowedHosts({"*"}).allow("any.example"));
  EXPECT_FALSE(AllowedHosts({"*"}).allow("any.example:evil.example"));
}

TEST(JsonType, IsJsonOrWhatCurlSaysOrNothing) {
  for (const char* type : {"", "application/json", "Application/JSON;charset=utf-8",
                           "application/x-www-form-urlencoded"}) {
    EXPECT_TRUE(is_json_type(type)) << type;
  }
  for (const char* type :
       {"text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x",
        "application/jsonp", "application/octet-stream"}) {
    EXPECT_FALSE(is_json_type(type)) << type;
  }
}

}  // namespace
}  // namespace pagoda
