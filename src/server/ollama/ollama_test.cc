// Ollama's API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/api_client.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {
namespace {

using nlohmann::json;

class OllamaTest : public ::testing::Test {
 protected:
  static json ask(const std::string& content, json more = json::object()) {
    more["model"] = "fake-model:latest";
    more["messages"] = {{{"role", "user"}, {"content", content}}};
    return more;
  }
  std::vector<json> lines(const std::string& path, const json& body) {
    const HttpResponse reply = client_.post(path, json_text(body));
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<json> all;
    std::istringstream text(reply.body);
    for (std::string line; std::getline(text, line);) all.push_back(parse_json(line));
    return all;
  }
  std::string prompt() { return client_.last_prompt(); }

  ApiClient client_;
};

TEST_F(OllamaTest, AChatStreamsLines) {
  const std::vector<json> all =
      lines("/api/chat", ask("count 5", {{"options", {{"num_predict", 40}}}}));
  std::string content;
  for (const json& line : all) content += line.at("message").at("content").get<std::string>();
  EXPECT_EQ(content, "1 2 3 4 5");
  EXPECT_FALSE(all.front().at("done").get<bool>());
  EXPECT_TRUE(all.back().at("done").get<bool>());
  EXPECT_EQ(all.back().at("done_reason"), "stop");
  EXPECT_GT(all.back().at("eval_count"), 0);
  EXPECT_GT(all.back().at("total_duration"), 0);
  EXPECT_EQ(all.back().at("created_at").get<std::string>().size(), 27u);
}

TEST_F(OllamaTest, PenaltiesHaveAWindow) {
  const auto window_of = [this](const json& options) {
    lines("/api/chat", ask("say hello", {{"options", options}}));
    return client_.engine().last_request().sampling.repeat_last_n;
  };
  EXPECT_EQ(window_of({{"repeat_last_n", 64}, {"repeat_penalty", 1.1}}), 64);
  EXPECT_EQ(window_of({{"repeat_last_n", 0}}), 0);
  EXPECT_EQ(window_of({{"repeat_last_n", -1}}), -1);
  EXPECT_EQ(window_of(json::object()), std::nullopt);
}

TEST_F(OllamaTest, AChatMayBeWhole) {
  const json body = client_.answer("/api/chat", ask("say hello", {{"stream", false}}).dump());
  EXPECT_EQ(body.at("message"), json({{"role", "assistant"}, {"content", "hello"}}));
  EXPECT_EQ(body.at("done"), true);
}

TEST_F(OllamaTest, CallsComeWholeWithArgumentsAsObjects) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const json tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])");
  const std::string text =
      R"(say <think>So.</think><tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)";
  const json expected = parse_json(R"([{"function": {"name": "f", "arguments": {"a": 1}}}])");
  const json whole =
      client_.answer("/api/chat", ask(text, {{"tools", tools}, {"stream", false}}).dump());
  EXPECT_EQ(whole.at("message").at("tool_calls"), expected);
  EXPECT_EQ(whole.at("message").at("thinking"), "So.");
  json calls = json::array();
  for (const json& line : lines("/api/chat", ask(text, {{"tools", tools}}))) {
    for (const json& call : line.at("message").value("tool_calls", json::array()))
      calls.push_back(call);
  }
  EXPECT_EQ(calls, expected);
}

TEST_F(OllamaTest, ACallThatIsNotWholeIsText) {
  const json tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])");
  for (const std::string text :
       {R"(<tool_call>{"name": "f", "arguments": {"a": "b)",
        R"(Look: <tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>)"}) {
    const json body = ask("say " + text, {{"tools", tools}});
    std::string streamed;
    for (const json& line : lines("/api/chat", body)) {
      streamed += line.at("message").at("content").get<std::string>();
      EXPECT_FALSE(line.at("message").contains("tool_calls"));
    }
    EXPECT_EQ(streamed, text);
    json whole = body;
    whole["stream"] = false;
    EXPECT_EQ(client_.answer("/api/chat", json_text(whole)).at("message"),
              json({{"role", "assistant"}, {"content", text}}));
  }
}

TEST_F(OllamaTest, APromptGoesThroughTheTemplateUnlessItIsRaw) {
  const json body = client_.answer(
      "/api/generate",
      R"({"model": "fake-model", "prompt": "say hello", "system": "Be kind.", "stream": false})");
  EXPECT_EQ(body.at("response"), "hello");
  EXPECT_EQ(prompt(),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nsay hello<|im_end|>\n"
            "<|im_start|>assistant\n");
  client_.answer("/api/generate", R"({"prompt": "say hello", "raw": true, "stream": false})");
  EXPECT_EQ(prompt(), "say hello");
  std::string text;
  for (const json& line : lines("/api/generate", {{"prompt", "count 3"}}))
    text += line.at("response").get<std::string>();
  EXPECT_EQ(text, "1 2 3");
}

TEST_F(OllamaTest, LogprobsStandBesideTheText) {
  const std::pair<const char*, json> asked[] = {{"/api/chat", ask("say hello")},
                                                {"/api/generate", {{"prompt", "say hello"}}}};
  for (const auto& [path, plain] : asked) {
    json body = plain;
    body["stream"] = false;
    EXPECT_FALSE(client_.answer(path, json_text(body)).contains("logprobs"));
    body["logprobs"] = true;
    body["top_logprobs"] = 3;
    const json whole = client_.answer(path, json_text(body));
    const json& places = whole.at("logprobs");
    ASSERT_EQ(places.size(), whole.at("eval_count").get<std::size_t>());
    std::string bytes;
    for (const json& place : places) {
      EXPECT_LE(place.at("logprob"), 0);
      ASSERT_EQ(place.at("top_logprobs").size(), 3u);
      EXPECT_EQ(place.at("top_logprobs")[0].size(), 3u);
      for (const int byte : place.at("bytes")) bytes += static_cast<char>(byte);
    }
    EXPECT_THAT(bytes, ::testing::StartsWith("hello"));
    EXPECT_EQ(places[0].at("token"), "he");
    body["stream"] = true;
    json streamed = json::array();
    for (const json& line : lines(path, body)) {
      for (const json& place : line.value("logprobs", json::array())) streamed.push_back(place);
    }
    EXPECT_EQ(streamed, places) << path;
  }
}

TEST_F(OllamaTest, TopLogprobsAreOllamas) {
  json body = {{"prompt", "say a"}, {"stream", false}, {"logprobs", true}};
  const std::string path = "/api/generate";
  const json answered = client_.answer(path, json_text(body));
  for (const json& place : answered.at("logprobs")) EXPECT_FALSE(place.contains("top_logprobs"));
  for (const int outside : {-1, 21}) {
    body["top_logprobs"] = outside;
    EXPECT_EQ(client_.refusal(path, json_text(body)).at("param"), "top_logprobs");
  }
  for (const json& alone : {json{{"prompt", "say a"}}, ask("say a")}) {
    json without = alone;
    without["top_logprobs"] = 2;
    without["stream"] = false;
    const json answer =
        client_.answer(alone.contains("prompt") ? path : "/api/chat", json_text(without));
    EXPECT_FALSE(answer.contains("logprobs"));
  }
}

TEST_F(OllamaTest, LogprobsOfACallStandBesideIt) {
  const json tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])");
  const json body = ask(R"(say <tool_call>{"name": "f", "arguments": {}}</tool_call>)",
                        {{"tools", tools}, {"logprobs", true}});
  std::size_t num_places = 0;
  const std::vector<json> all = lines("/api/chat", body);
  for (const json& line : all) num_places += line.value("logprobs", json::array()).size();
  EXPECT_EQ(num_places, all.back().at("eval_count").get<std::size_t>());
}

TEST_F(OllamaTest, TheContextOfAnAnswerGoesBeforeTheNextPrompt) {
  const std::string path = "/api/generate";
  const std::vector<int> first =
      client_.answer(path, R"({"prompt": "say hello", "stream": false})").at("context");
  const std::string turns =
      "<|im_start|>user\nsay hello<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>";
  EXPECT_EQ(client_.model().tokenizer->decode(first, false).value(), turns);
  json next = {{"prompt", "say more"}, {"context", first}};
  const std::vector<json> all = lines(path, next);
  const std::vector<int> asked = client_.engine().last_request().prompt_token_ids;
  EXPECT_TRUE(std::equal(first.begin(), first.end(), asked.begin()));
  EXPECT_EQ(prompt(), turns + "<|im_start|>user\nsay more<|im_end|>\n<|im_start|>assistant\n");
  const std::vector<int> second = all.back().at("context");
  EXPECT_EQ(client_.model().tokenizer->decode(second, false).value(), prompt() + "more<|im_end|>");
  EXPECT_EQ(second.size(), all.back().at("prompt_eval_count").get<std::size_t>() +
                               all.back().at("eval_count").get<std::size_t>());
  for (std::size_t i = 0; i + 1 < all.size(); ++i) EXPECT_FALSE(all[i].contains("context"));
  client_.answer(
      path, json_text(json{{"prompt", "!"}, {"context", first}, {"raw", true}, {"stream", false}}));
  EXPECT_EQ(prompt(), turns + "!");
  EXPECT_FALSE(lines("/api/chat", ask("say a")).back().contains("context"));
}

TEST_F(OllamaTest, AContextIsChecked) {
  const auto refusal = [&](const json& context) {
    return client_.refusal("/api/generate",
                           json_text(json{{"prompt", "say a"}, {"context", context}}));
  };
  for (const json& wrong :
       {json("a"), json{{"a", 1}}, json{1, "2"}, json{1.5}, json{-1}, json{1 << 30}})
    EXPECT_EQ(refusal(wrong).at("param"), "context") << wrong;
  const int vocab_size = client_.model().tokenizer->vocab_size();
  EXPECT_EQ(refusal(json{0, vocab_size}).at("code"), "out_of_range");
  for (const int length : {2047, 2048}) {
    const json error = refusal(std::vector<int>(length, 1));
    EXPECT_EQ(error.at("param"), "context");
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
  }
  client_.answer("/api/generate", R"({"prompt": "say a", "context": [], "stream": false})");
  client_.refusal("/api/chat", json_text(ask("say a", {{"context", {1}}})));
}

TEST_F(OllamaTest, OnlyTheBeginningOfATextHasTheTokenForIt) {
  client_.model().tokenizer = tokenizer_with_bos();
  json body = {{"prompt", "ab"}, {"stream", false}};
  const auto ids = [&](const json& context) {
    body["context"] = context;
    client_.answer("/api/generate", json_text(body));
    return client_.engine().last_request().prompt_token_ids;
  };
  set_chat_template(client_.model(), "{{ bos_token }}{{ messages[-1]['content'] }}");
  for (const bool is_raw : {false, true}) {
    body["raw"] = is_raw;
    EXPECT_EQ(ids(json::array()), std::vector({2, 0, 1}));
    EXPECT_EQ(ids({2, 1}), std::vector({2, 1, 0, 1}));
  }
  // The same token may open each turn too, as <|im_start|> does in ChatML.
  body["raw"] = false;
  set_chat_template(client_.model(), "<s>{{ messages[-1]['content'] }}<s>");
  EXPECT_EQ(ids({2, 1}), std::vector({2, 1, 2, 0, 1, 2}));
}

TEST_F(OllamaTest, OnlyAPositiveNumPredictIsABound) {
  const std::pair<const char*, json> asked[] = {{"/api/chat", ask("count 30")},
                                                {"/api/generate", {{"prompt", "count 30"}}}};
  for (const auto& [path, plain] : asked) {
    json body = plain;
    body["stream"] = false;
    for (const int unbounded : {0, -1, -2}) {
      body["options"] = {{"num_predict", unbounded}};
      const json answer = client_.answer(path, json_text(body));
      EXPECT_EQ(answer.at("done_reason"), "stop") << unbounded;
      EXPECT_GT(answer.at("eval_count"), 50);
    }
    body["options"] = {{"num_predict", 3}};
    EXPECT_EQ(client_.answer(path, json_text(body)).at("eval_count"), 3);
  }
}

TEST_F(OllamaTest, TellsOfTheModel) {
  client_.model().weights = {.num_bytes = 98'000'000,
                             .is_gguf = true,
                             .modified_ns = 1'700'000'000'000'000'000,
                             .num_parameters = 134'515'008,
                             .format = "Q4_1",
                             .digest = "0123456789abcdef"};
  const json tags = parse_json(client_.get("/api/tags").body).at("models");
  EXPECT_EQ(tags.at(0).at("name"), "fake-model");
  EXPECT_EQ(tags.at(0).at("modified_at"), "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(tags.at(0).at("digest"), "0123456789abcdef");
  EXPECT_EQ(tags.at(0).at("details").at("format"), "gguf");
  EXPECT_EQ(tags.at(0).at("details").at("parameter_size"), "134.5M");
  EXPECT_EQ(tags.at(0).at("details").at("quantization_level"), "Q4_1");
  const json running = parse_json(client_.get("/api/ps").body).at("models").at(0);
  EXPECT_EQ(running.at("model"), "fake-model");
  EXPECT_EQ(running.at("digest"), "0123456789abcdef");
  const json version = parse_json(client_.get("/api/version").body);
  EXPECT_EQ(version.at("version"), "0.12.11");
  EXPECT_TRUE(version.contains("pagoda"));
  const json shown = client_.answer("/api/show", R"({"model": "fake-model:latest"})");
  EXPECT_EQ(shown.at("capabilities"), json({"completion", "tools", "embedding", "insert"}));
  client_.model().no_embeddings = unsupported("it makes none");
  client_.model().fill_in.reset();
  EXPECT_EQ(client_.answer("/api/show", "{}").at("capabilities"), json({"completion", "tools"}));
  client_.refusal("/api/show", R"({"model": "fake-model", "name": "other"})", 404);
  EXPECT_EQ(client_.refusal("/api/show", R"({"model": "other"})", 404).at("code"),
            "model_not_found");
}

TEST_F(OllamaTest, ARequestWithoutAPromptIsCheckedAndLoadsTheModel) {
  const std::string path = "/api/generate";
  EXPECT_EQ(client_.answer(path, R"({"model": "fake-model:latest"})").at("done_reason"), "load");
  client_.service().model_names.push_back("other-name");
  EXPECT_EQ(client_.answer(path, R"({"model": "other-name"})").at("model"), "other-name");
  EXPECT_EQ(client_.refusal(path, R"({"model": "other"})", 404).at("code"), "model_not_found");
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"prompt": "", "format": {"no_keyword_of_schemas": true}})", "format"},
      {R"({"options": {"num_predict": 1.5}})", "num_predict"},
      {R"({"logit_bias": {"1000000": 1}})", "logit_bias"}};
  for (const auto& [body, param] : wrong)
    EXPECT_EQ(client_.refusal(path, body).at("param"), param) << body;
  EXPECT_THAT(client_.refusal(path, R"({"stop_token_ids": [1000000]})").at("message"),
              ::testing::HasSubstr("stop_token_ids"));
}

TEST_F(OllamaTest, AChatWithoutMessagesLoadsTheModel) {
  const json loaded = client_.answer("/api/chat", R"({"model": "fake-model", "messages": []})");
  EXPECT_EQ(loaded.at("done_reason"), "load");
  EXPECT_EQ(loaded.at("message").at("content"), "");
  EXPECT_EQ(client_.refusal("/api/chat", R"({"model": "other", "messages": []})", 404).at("code"),
            "model_not_found");
  EXPECT_EQ(client_.refusal("/api/chat", R"({"model": "fake-model"})").at("param"), "messages");
}

TEST_F(OllamaTest, ModelsAreNotManaged) {
  EXPECT_EQ(client_.answer("/api/pull", R"({"model": "fake-model:latest"})"),
            json({{"status", "success"}}));
  EXPECT_THAT(client_.refusal("/api/pull", R"({"model": "other"})", 404).at("message"),
              ::testing::HasSubstr("pagoda pull"));
  for (const char* path : {"/api/create", "/api/copy", "/api/push"})
    EXPECT_THAT(client_.refusal(path, "{}", 404).at("message"), ::testing::HasSubstr(path));
  const HttpResponse erased = client_.send({.method = "DELETE", .path = "/api/delete"});
  EXPECT_EQ(erased.status, 404);
  EXPECT_EQ(parse_json(erased.body).at("error"),
            "/api/delete is not served: the server has the model that it was started with");
}

TEST_F(OllamaTest, ErrorsHaveOllamasShape) {
  for (const char* path : {"/api/chat", "/api/generate", "/api/embed", "/api/show"}) {
    for (const HttpResponse& response : {client_.post(path, "no JSON"), client_.get(path)}) {
      EXPECT_GE(response.status, 400);
      const json body = parse_json(response.body);
      EXPECT_EQ(body.size(), 1u);
      EXPECT_TRUE(body.at("error").is_string()) << response.body;
    }
  }
}

TEST_F(OllamaTest, ErrorsNameTheField) {
  EXPECT_EQ(client_.refusal("/api/generate", R"({"prompt": "a", "images": ["aa"]})").at("message"),
            "'images' is not supported: images are not read, only texts");
  EXPECT_EQ(client_.refusal("/api/chat", R"({"messages": [{"role": "user", "images": ["aa"]}]})")
                .at("message"),
            "'messages[0].images' is not supported: images are not read, only texts");
  EXPECT_EQ(client_.refusal("/api/chat", R"({"messages": [1]})").at("param"), "messages");
  const std::vector<json> all = lines("/api/chat", ask("fail it broke"));
  EXPECT_THAT(all.back().at("error").get<std::string>(), ::testing::HasSubstr("it broke"));
}

}  // namespace
}  // namespace pagoda
