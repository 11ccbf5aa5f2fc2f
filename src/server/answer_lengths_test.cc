// Lengths that requests ask for, in all APIs: each is the most tokens of an answer, and one that is
// larger than what the context leaves ends with the context.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr int kContext = 128;

// One way to ask for an answer.
struct Way {
  const char* path;
  json body;             // its answer is longer than the context
  const char* length;    // the field of the answer's length, as a JSON pointer
  const char* reason;    // where the answer says why it ended
  const char* cut_word;  // what stands there if its length ended it
};

json chat_of(const json& more) {
  json body = {{"messages", {{{"role", "user"}, {"content", "count 200"}}}}, {"stream", false}};
  body.update(more);
  return body;
}

std::vector<Way> all_ways() {
  const json prompt = {{"prompt", "count 200"}, {"stream", false}};
  const json options = {{"options", json::object()}};
  const char* finish = "/choices/0/finish_reason";
  const char* chats = "/v1/chat/completions";
  return {
      {chats, chat_of(json::object()), "/max_tokens", finish, "length"},
      {chats, chat_of(json::object()), "/max_completion_tokens", finish, "length"},
      {chats, chat_of(json::object()), "/max_new_tokens", finish, "length"},
      {chats, chat_of(json::object()), "/n_predict", finish, "length"},
      {"/v1/completions", prompt, "/max_tokens", finish, "length"},
      {"/v1/completions", prompt, "/n_predict", finish, "length"},
      {"/v1/responses",
       {{"input", "count 200"}},
       "/max_output_tokens",
       "/incomplete_details/reason",
       "max_output_tokens"},
      {"/v1/messages", chat_of(json::object()), "/max_tokens", "/stop_reason", "max_tokens"},
      {"/api/chat", chat_of(options), "/options/num_predict", "/done_reason", "length"},
      {"/api/generate",
       {{"prompt", "count 200"}, {"stream", false}, {"options", json::object()}},
       "/options/num_predict",
       "/done_reason",
       "length"},
      {"/infill",
       {{"input_prefix", "a"}, {"ignore_eos", true}},
       "/n_predict",
       "/stop_type",
       "limit"},
  };
}

json with_length(const Way& way, const json& length) {
  json body = way.body;
  body[json::json_pointer(way.length)] = length;
  return body;
}

// Expects that an answer of this length ends with the context.
void expect_whole_context(ApiClient& client, const Way& way, const json& length) {
  const json body = with_length(way, length);
  const json answer = client.answer(way.path, json_text(body));
  EXPECT_EQ(answer.at(json::json_pointer(way.reason)), way.cut_word) << way.path << body;
  const GenerationRequest asked = client.engine().last_request();
  EXPECT_EQ(std::ssize(asked.prompt_token_ids) + asked.sampling.max_tokens, kContext)
      << way.path << body;
}

TEST(AnswerLengths, OneBeyondTheContextEndsWithIt) {
  ApiClient client({.max_model_len = kContext});
  for (const Way& way : all_ways()) {
    for (const std::int64_t length :
         {std::int64_t{kContext}, std::int64_t{1} << 31, std::numeric_limits<std::int64_t>::max()})
      expect_whole_context(client, way, length);
  }
}

TEST(AnswerLengths, OneThatFitsIsKept) {
  ApiClient client({.max_model_len = kContext});
  for (const Way& way : all_ways()) {
    const json answer = client.answer(way.path, json_text(with_length(way, 3)));
    EXPECT_EQ(answer.at(json::json_pointer(way.reason)), way.cut_word) << way.path;
    EXPECT_EQ(client.engine().last_request().sampling.max_tokens, 3) << way.path << way.length;
  }
}

TEST(AnswerLengths, MinusOneIsNoBoundWhereTheApiHasIt) {
  ApiClient client({.max_model_len = kContext});
  for (const Way& way : all_ways()) {
    const std::string path = way.path;
    if (path != "/v1/responses" && path != "/v1/messages") {
      expect_whole_context(client, way, -1);
      continue;
    }
    EXPECT_EQ(client.refusal(path, json_text(with_length(way, -1))).at("param"), way.length + 1);
  }
}

TEST(AnswerLengths, OthersAreRefusedByName) {
  ApiClient client({.max_model_len = kContext});
  for (const Way& way : all_ways()) {
    const std::string name = json::json_pointer(way.length).back();
    for (const json& length : {json(-3), json(1.5), json("5"), json(1e19), json(-1e19)}) {
      const json error = client.refusal(way.path, json_text(with_length(way, length)));
      EXPECT_EQ(error.at("param"), name) << way.path << error;
    }
  }
}

}  // namespace
}  // namespace pagoda
