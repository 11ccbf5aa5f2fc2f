#include "server/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

HttpRequest with_header(const std::string& name, const std::string& value) {
  return {.headers = {{name, value}}};
}

TEST(ApiKeys, AcceptsOnlyWholeKeys) {
  const ApiKeys keys({"secret", "other"});
  for (const char* good : {"Bearer secret", "bearer other", "Bearer   secret"}) {
    EXPECT_TRUE(keys.accept(with_header("authorization", good))) << good;
  }
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret",
                          "secret", "Bearer Secret"}) {
    EXPECT_FALSE(keys.accept(with_header("authorization", bad))) << bad;
  }
  EXPECT_FALSE(keys.accept({}));
  EXPECT_TRUE(ApiKeys({}).accept({}));
}

TEST(ApiKeys, GuardTheModelAndLeaveTheRestOpen) {
  for (const char* path :
       {"/v1", "/v1/models", "/v1/completions", "/v1/anything", "/tokenize", "/detokenize"}) {
    EXPECT_TRUE(needs_api_key(path)) << path;
  }
  for (const char* path : {"/", "/health", "/metrics", "/version", "/openapi.json"})
    EXPECT_FALSE(needs_api_key(path)) << path;
}

TEST(Cors, AllowsTheOriginsItWasGiven) {
  const Cors some({"https://a.example"});
  EXPECT_THAT(some.headers(with_header("origin", "https://a.example")),
              ElementsAre(Pair("Access-Control-Allow-Origin", "https://a.example"),
                          Pair("Vary", "Origin")));
  EXPECT_THAT(some.headers(with_header("origin", "https://b.example")), IsEmpty());
  EXPECT_THAT(some.headers({}), IsEmpty());
  EXPECT_THAT(Cors({"*"}).headers(with_header("origin", "https://b.example")),
              ElementsAre(Pair("Access-Control-Allow-Origin", "*")));
}

TEST(Cors, AnswersAPreflight) {
  HttpRequest request{
      .method = "OPTIONS",
      .headers = {{"origin", "https://a.example"}, {"access-control-request-method", "POST"}}};
  EXPECT_TRUE(Cors({"*"}).is_preflight(request));
  EXPECT_EQ(Cors({"*"}).preflight(request).status, 204);
  EXPECT_EQ(Cors({"https://b.example"}).preflight(request).status, 403);
  request.headers.pop_back();
  EXPECT_FALSE(Cors({"*"}).is_preflight(request));
}

}  // namespace
}  // namespace pagoda
