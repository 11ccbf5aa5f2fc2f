// Errors of /v1/messages, and of other paths for clients of Anthropic's API.
#include <gtest/gtest.h>

#include <string>

#include "core/json.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr const char* kErrorsPath = "/v1/messages";
constexpr const char* kMessageAsk =
    R"({"max_tokens": 5, "messages": [{"role": "user", "content": "say a"}]})";
constexpr const char* kMessageOfAnother =
    R"({"model": "b", "max_tokens": 5, "messages": [{"role": "user", "content": "say a"}]})";

void expect_anthropic_error(const HttpResponse& response, int status, const char* type) {
  EXPECT_EQ(response.status, status);
  const json body = parse_json(response.body);
  EXPECT_EQ(body.at("type"), "error");
  EXPECT_EQ(body.at("error").at("type"), type) << response.body;
  EXPECT_FALSE(body.at("error").at("message").get<std::string>().empty());
  EXPECT_EQ(body.at("request_id"), "req-1");
}

TEST(AnthropicError, WhatIsWrongWithARequestHasTheShape) {
  ApiClient client;
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    expect_anthropic_error(client.post(path, "{}"), 400, "invalid_request_error");
    expect_anthropic_error(client.post(path, "no JSON"), 400, "invalid_request_error");
    expect_anthropic_error(client.post(path, kMessageOfAnother), 404, "not_found_error");
    expect_anthropic_error(client.get(path), 405, "invalid_request_error");
    expect_anthropic_error(client.send({.method = "POST",
                                        .path = path,
                                        .headers = {{"content-type", "text/plain"}},
                                        .body = "a"}),
                           415, "invalid_request_error");
  }
  expect_anthropic_error(client.post("/v1/messages/batches", "{}"), 404, "not_found_error");
}

TEST(AnthropicError, WhatKeepsTheServerFromAnsweringHasTheShape) {
  ApiClient with_keys({}, {.api_keys = {{sha256("key"), "alice"}}});
  expect_anthropic_error(with_keys.post(kErrorsPath, kMessageAsk), 401, "authentication_error");
  ApiClient full({.max_queue = 1});
  const json tokens = full.answer("/tokenize", R"({"prompt": "think 9"})").at("tokens");
  ASSERT_TRUE(full.engine().submit({.prompt_token_ids = tokens}, [](const OutputEvent&) {}).ok());
  expect_anthropic_error(full.post(kErrorsPath, kMessageAsk), 429, "rate_limit_error");
  full.router().drain();
  expect_anthropic_error(full.post(kErrorsPath, kMessageAsk), 503, "overloaded_error");
}

TEST(AnthropicError, AFailureWithinAStreamHasTheShape) {
  ApiClient client;
  const json last = client
                        .named_events(kErrorsPath, R"({"max_tokens": 50, "stream": true,
      "messages": [{"role": "user", "content": "fail it broke"}]})")
                        .back();
  EXPECT_EQ(last.at("type"), "error");
  EXPECT_EQ(last.at("error").at("type"), "api_error");
  EXPECT_EQ(last.at("request_id"), "req-1");
}

// Tool runners of Anthropic's packages go on without a thread where these details say so.
TEST(AnthropicError, ARefusedThreadHasDetails) {
  ApiClient client;
  const HttpResponse response = client.post(
      kErrorsPath, R"({"max_tokens": 5, "messages": [{"role": "user", "content": "say a"}],
                       "thread": {"type": "create"}})");
  expect_anthropic_error(response, 400, "invalid_request_error");
  const json expected = {{"error_code", "thread_unsupported_request"}, {"unsupported", {"thread"}}};
  EXPECT_EQ(parse_json(response.body).at("error").at("details"), expected);
  EXPECT_FALSE(parse_json(client.post(kErrorsPath, "{}").body).at("error").contains("details"));
}

// A client of Anthropic's reads errors in its own shape at every path.
TEST(AnthropicError, TheClientsOfAnthropicGetItEverywhere) {
  ApiClient client;
  for (const char* path : {"/v1/models/none", "/v1/files"}) {
    expect_anthropic_error(
        client.send(
            {.method = "GET", .path = path, .headers = {{"anthropic-version", "2023-06-01"}}}),
        404, "not_found_error");
    EXPECT_TRUE(parse_json(client.get(path).body).at("error").contains("param")) << path;
  }
}

}  // namespace
}  // namespace pagoda
