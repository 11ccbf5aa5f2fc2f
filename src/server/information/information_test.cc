// Endpoints that describe the server to clients of vLLM and llama.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/json.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

json told(ApiClient& client, const std::string& path) {
  const HttpResponse response = client.get(path);
  EXPECT_EQ(response.status, 200) << path;
  return parse_json(response.body);
}

TEST(Information, APingIsTheHealth) {
  ApiClient client;
  EXPECT_EQ(told(client, "/ping"), told(client, "/health"));
  client.engine().set_healthy(false);
  EXPECT_EQ(client.get("/ping").status, 503);
}

TEST(Information, AnthropicsClientsGetModelsInTheirShape) {
  ApiClient client;
  client.model().weights.modified_ns = 1'700'000'000'000'000'000;
  const auto ask = [&](const std::string& path) {
    const HttpResponse response = client.send(
        {.method = "GET", .path = path, .headers = {{"anthropic-version", "2023-06-01"}}});
    EXPECT_EQ(response.status, 200);
    return parse_json(response.body);
  };
  const json list = ask("/v1/models");
  ASSERT_EQ(list.at("data").size(), 2u);
  EXPECT_EQ(list.at("has_more"), false);
  EXPECT_EQ(list.at("first_id"), "fake-model");
  EXPECT_EQ(list.at("last_id"), "other-name");
  const json model = ask("/v1/models/other-name");
  EXPECT_EQ(list.at("data").at(1), model);
  EXPECT_EQ(model.at("type"), "model");
  EXPECT_EQ(model.at("display_name"), "other-name");
  EXPECT_EQ(model.at("created_at"), "2023-11-14T22:13:20Z");
  const json models = told(client, "/v1/models");
  EXPECT_EQ(models.at("object"), "list");
  EXPECT_EQ(models.at("data").at(0).at("created"), 1'700'000'000);
}

TEST(Information, TheLoadIsWhatRunsOrWaits) {
  ApiClient client;
  EXPECT_EQ(told(client, "/load"), parse_json(R"({"server_load": 0})"));
  EXPECT_EQ(told(client, "/v1/load"), told(client, "/load"));
}

TEST(Information, LimitsAreTheEngines) {
  ApiClient client({.max_queue = 7});
  const EngineLimits& limits = client.model().engine->limits();
  const json info = told(client, "/server_info");
  EXPECT_EQ(info.at("model"), "fake-model");
  EXPECT_EQ(info.at("max_queue"), 7);
  EXPECT_EQ(info.at("max_model_len"), limits.max_model_len);
  EXPECT_EQ(info.at("kv_cache").at("dtype"), "k:int8,v:int4");
  EXPECT_EQ(info.at("kv_cache").at("num_blocks"), 400);
}

TEST(Information, PropsAreWhatARequestIsSampledBy) {
  ApiClient client;
  client.model().defaults.temperature = 0.25f;
  const json props = told(client, "/props");
  EXPECT_EQ(props.at("default_generation_settings").at("params").at("temperature"), 0.25);
  EXPECT_EQ(props.at("default_generation_settings").at("params").at("repeat_penalty"), 1);
  EXPECT_EQ(props.at("default_generation_settings").at("params").at("repeat_last_n"), -1);
  EXPECT_EQ(props.at("chat_template"), client.model().chat_template->text());
  EXPECT_EQ(props.at("eos_token"), "<|im_end|>");
  EXPECT_EQ(props.at("total_slots"), parse_json(client.get("/slots").body).size());
}

TEST(Information, SlotsInUseComeFirst) {
  ApiClient client;
  const json slots = told(client, "/slots");
  ASSERT_EQ(slots.size(), client.model().engine->limits().max_num_seqs);
  EXPECT_EQ(slots.back().at("id"), slots.size() - 1);
  EXPECT_EQ(slots.front().at("is_processing"), false);
}

TEST(Information, TheTokenizerTellsWhatTemplatesNeed) {
  ApiClient client;
  const json info = told(client, "/tokenizer_info");
  EXPECT_EQ(info.at("eos_token"), "<|im_end|>");
  EXPECT_EQ(info.at("vocab_size"), client.model().tokenizer->vocab_size());
  EXPECT_EQ(info.at("chat_template"), client.model().chat_template->text());
  ApiClient plain({.has_chat_template = false});
  EXPECT_EQ(told(plain, "/tokenizer_info").at("chat_template"), nullptr);
}

TEST(Information, AnAppliedTemplateIsThePromptOfTheChat) {
  ApiClient client;
  const std::string chat = R"({"messages": [{"role": "user", "content": "say ä"}],
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]})";
  const json applied = client.answer("/apply-template", chat);
  client.answer("/v1/chat/completions", chat);
  EXPECT_EQ(applied.at("prompt"), client.last_prompt());
  const std::vector<int> ids = client.answer("/tokenize", chat).at("tokens");
  EXPECT_EQ(ids, client.engine().last_request().prompt_token_ids);
  EXPECT_EQ(client.refusal("/apply-template", R"({"messages": []})").at("param"), "messages");
  EXPECT_EQ(client
                .refusal("/apply-template", R"({"messages": [{"role": "user", "content": "a"}],
      "model": "none"})",
                         404)
                .at("code"),
            "model_not_found");
  ApiClient plain({.has_chat_template = false});
  EXPECT_EQ(plain.refusal("/apply-template", chat).at("code"), "no_chat_template");
}

TEST(Information, EventsOfThePrefixCacheAreToldWhereThatIsAskedFor) {
  ApiClient client;
  const std::string path = "/v1/prefix_cache/events/";
  EXPECT_EQ(client.get(path + "0").status, 404);
  const auto events = std::make_shared<CacheEvents>();
  client.service().cache_events = events;
  const Sha256Digest root = events->since(0, "").root;
  events->add_stored(sha256("a"), root, {.digest = root}, {});
  json page = parse_json(client.get(path + "0").body);
  EXPECT_EQ(page.at("root"), to_hex(root));
  EXPECT_EQ(page.at("is_whole"), true);
  const json stored = {
      {"type", "stored"}, {"digest", to_hex(sha256("a"))}, {"parent", to_hex(root)}};
  EXPECT_EQ(page.at("events"), json::array({stored}));
  events->add_removed(sha256("a"));
  page = parse_json(client.get(path + to_string(page.at("next"))).body);
  EXPECT_EQ(page.at("is_whole"), false);
  EXPECT_EQ(page.at("events"),
            json::array({{{"type", "removed"}, {"digest", to_hex(sha256("a"))}}}));
  for (const char* after : {"-1", "x", "1x", "99999999999999999999"})
    EXPECT_EQ(client.get(path + after).status, 404) << after;
}

TEST(Information, ThePrefixCacheIsReset) {
  ApiClient client;
  EXPECT_EQ(client.answer("/reset_prefix_cache", ""), json::object());
  EXPECT_THAT(client.engine().resets(), ElementsAre(""));
  EXPECT_EQ(client.get("/reset_prefix_cache").status, 405);
  EXPECT_EQ(client.engine().resets().size(), 1u);
}

// A client's key gives access only to its own part of the prefix cache.
TEST(Information, EachKeyHasAPrefixCacheOfItsOwn) {
  ApiClient client({}, {.api_keys = {{sha256("a-key"), "alice"}, {sha256("b-key"), "bob"}}});
  const auto send_as = [&](const std::string& key, const std::string& method,
                           const std::string& path, const std::string& body = "") {
    const HttpResponse response = client.send({.method = method,
                                               .path = path,
                                               .headers = {{"authorization", "Bearer " + key}},
                                               .body = body});
    EXPECT_EQ(response.status, 200) << path;
    return parse_json(response.body);
  };
  std::map<std::string, std::string> owners;
  for (const std::string key : {"a-key", "b-key"}) {
    const std::string asked = R"({"prompt": "a", "cache_salt": "salt"})";
    send_as(key, "POST", "/v1/completions", asked);
    owners[key] = client.engine().last_request().cache_owner;
    EXPECT_EQ(client.engine().last_request().cache_salt, "salt");
    send_as(key, "POST", "/v1/embeddings", R"({"input": "a"})");
    EXPECT_EQ(client.engine().last_request().cache_owner, owners[key]);
  }
  EXPECT_NE(owners["a-key"], owners["b-key"]);
  send_as("b-key", "POST", "/reset_prefix_cache");
  EXPECT_THAT(client.engine().resets(), ElementsAre(owners["b-key"]));

  const auto events = std::make_shared<CacheEvents>();
  client.service().cache_events = events;
  const Sha256Digest root = events->since(0, owners["a-key"]).root;
  events->add_stored(sha256("a"), root, {.digest = root}, {});
  const json own = send_as("a-key", "GET", "/v1/prefix_cache/events/0");
  EXPECT_EQ(own.at("root"), to_hex(root));
  EXPECT_EQ(own.at("events").size(), 1u);
  const json other = send_as("b-key", "GET", "/v1/prefix_cache/events/0");
  EXPECT_NE(other.at("root"), own.at("root"));
  EXPECT_EQ(other.at("events"), json::array());
}

}  // namespace
}  // namespace pagoda
