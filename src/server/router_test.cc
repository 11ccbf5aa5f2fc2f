#include "server/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/endpoints.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

json parsed(const HttpResponse& response) {
  return parse_json(response.body);
}

TEST(Router, KeysGuardAllButWhatTellsOfTheServer) {
  const std::set<std::string_view> open = {
      "/",     "/health",  "/ping",    "/livez",        "/readyz",
      "/load", "/version", "/metrics", "/openapi.json", "/v1/health"};
  for (const Endpoint& endpoint : endpoints())
    EXPECT_NE(needs_api_key(endpoint.path), open.contains(endpoint.path)) << endpoint.path;
  for (const char* nothing_there : {"/v1", "/v1/anything", "/api/anything"})
    EXPECT_TRUE(needs_api_key(nothing_there)) << nothing_there;
  EXPECT_FALSE(needs_api_key("/anything"));
}

TEST(Router, TellsOfTheServer) {
  ApiClient client;
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_TRUE(parsed(client.get("/version")).at("version").is_string());
  const json models = parsed(client.get("/v1/models"));
  EXPECT_EQ(models.at("data").size(), 2u);
  EXPECT_EQ(models.at("data").at(0).at("id"), "fake-model");
  EXPECT_EQ(models.at("data").at(0).at("max_model_len"), 2048);
  EXPECT_EQ(parsed(client.get("/v1/models/other%2Dname")).at("id"), "other-name");
  EXPECT_EQ(client.get("/v1/models/none").status, 404);
  client.engine().set_healthy(false);
  EXPECT_EQ(client.get("/health").status, 503);
}

TEST(Router, RefusesOtherPathsAndMethods) {
  ApiClient client;
  EXPECT_EQ(parsed(client.get("/v1/nothing")).at("error").at("code"), "not_found");
  EXPECT_EQ(client.get("/v1/nothing").status, 404);
  const HttpResponse get_only = client.post("/health", "");
  EXPECT_EQ(get_only.status, 405);
  EXPECT_THAT(get_only.headers, Contains(Pair("Allow", "GET, HEAD")));
  const HttpResponse post_only = client.get("/v1/completions");
  EXPECT_EQ(post_only.status, 405);
  EXPECT_THAT(post_only.headers, Contains(Pair("Allow", "POST")));
  EXPECT_EQ(client.send({.method = "HEAD", .path = "/health"}).status, 200);
}

TEST(Router, MessagesQuoteOnlySoMuch) {
  ApiClient client;
  std::string long_name;
  for (int i = 0; i < 10000; ++i) long_name += "é";
  const json error =
      client.refusal("/v1/completions", R"({"prompt": "a", "model": ")" + long_name + R"("})", 404);
  EXPECT_LE(error.at("message").get<std::string>().size(), 1003u);
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("éé..."));
}

TEST(Router, AsksForKeysAndLetsPreflightsPass) {
  ApiClient client(
      {}, {.api_keys = {{sha256("key"), "alice"}}, .allowed_origins = {"https://a.example"}});
  const HttpResponse refused = client.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(parsed(refused).at("error").at("code"), "invalid_api_key");
  EXPECT_EQ(client.post("/tokenize", R"({"prompt": "a"})").status, 401);
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(
      client
          .send(
              {.method = "GET", .path = "/v1/models", .headers = {{"authorization", "Bearer key"}}})
          .status,
      200);
  const HttpResponse preflight = client.send(
      {.method = "OPTIONS",
       .path = "/v1/chat/completions",
       .headers = {{"origin", "https://a.example"}, {"access-control-request-method", "POST"}}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_THAT(preflight.headers,
              Contains(Pair("Access-Control-Allow-Origin", "https://a.example")));
}

TEST(Router, OnceItDrainsRequestsAreRefusedAndTheServerStillTellsOfItself) {
  ApiClient client;
  EXPECT_EQ(client.get("/readyz").status, 200);
  client.router().drain();
  const HttpResponse refused = client.post("/v1/completions", R"({"prompt": "say a"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(parsed(refused).at("error").at("code"), "draining");
  EXPECT_THAT(refused.headers, Contains(Pair("Retry-After", "1")));
  EXPECT_EQ(client.get("/readyz").status, 503);
  EXPECT_EQ(client.post("/tokenize", R"({"prompt": "a"})").status, 503);
  for (const char* path : {"/livez", "/health", "/metrics", "/v1/models"})
    EXPECT_EQ(client.get(path).status, 200) << path;
}

TEST(Router, APageOfAnotherOriginIsRefusedWhateverItSends) {
  ApiClient client({}, {.allowed_origins = {"https://a.example"}});
  const auto ask = [&](const std::string& origin) {
    return client.send({.method = "POST",
                        .path = "/v1/completions",
                        .headers = {{"host", "localhost:8000"}, {"origin", origin}},
                        .body = R"({"prompt": "say a"})"});
  };
  EXPECT_EQ(parsed(ask("https://b.example")).at("error").at("message"),
            "Origin: expected this server's own or one given by --allowed-origins, got "
            "https://b.example");
  EXPECT_EQ(ask("https://b.example").status, 403);
  EXPECT_EQ(ask("http://localhost:8000").status, 200);
  EXPECT_THAT(ask("https://a.example").headers,
              Contains(Pair("Access-Control-Allow-Origin", "https://a.example")));
  const HttpResponse preflight = client.send(
      {.method = "OPTIONS",
       .path = "/v1/completions",
       .headers = {{"origin", "https://b.example"}, {"access-control-request-method", "POST"}}});
  EXPECT_EQ(preflight.status, 403);
}

TEST(Router, AnotherNameThanTheServersOwnIsRefused) {
  ApiClient client({}, {.allowed_hosts = {"llm.example"}});
  const auto ask = [&](const std::string& host) {
    return client.send({.method = "GET", .path = "/health", .headers = {{"host", host}}});
  };
  EXPECT_EQ(ask("llm.example:8000").status, 200);
  EXPECT_EQ(ask("evil.example:8000").status, 403);
  EXPECT_EQ(parsed(ask("evil.example:8000")).at("error").at("message"),
            "Host: expected an address, localhost or a name given by --allowed-hosts, got "
            "evil.example:8000");
}

TEST(Router, APathBelowTheRootIsTheSameWithAndWithoutIt) {
  for (const char* root : {"", "/llm"}) EXPECT_EQ(below_root(root, "/livez"), "/livez");
  EXPECT_EQ(below_root("/llm", "/llm/livez"), "/livez");
  EXPECT_EQ(below_root("/llm", "/llm"), "/");
  EXPECT_EQ(below_root("/llm", "/llmother/livez"), "/llmother/livez");
}

TEST(Router, ASlashAtTheEndOfAPathChangesNothing) {
  EXPECT_EQ(below_root("", "/"), "/");
  EXPECT_EQ(below_root("/llm", "/llm/"), "/");
  EXPECT_EQ(below_root("/llm", "/llm/v1/models/"), "/v1/models");
  ApiClient client;
  EXPECT_EQ(client.get("/v1/models/").body, client.get("/v1/models").body);
  EXPECT_EQ(client.post("/v1/completions/", R"({"prompt": "say a"})").status, 200);
}

TEST(Router, LlamaCppsOtherPathsAnswerTheSame) {
  ApiClient client;
  EXPECT_EQ(client.get("/models").body, client.get("/v1/models").body);
  EXPECT_EQ(client.get("/v1/health").body, client.get("/health").body);
  const char* chat = R"({"messages": [{"role": "user", "content": "say a"}], "seed": 1})";
  EXPECT_EQ(parsed(client.post("/chat/completions", chat)).at("choices"),
            parsed(client.post("/v1/chat/completions", chat)).at("choices"));
}

TEST(Router, AProxyMayTakeTheRootPathAwayOrLeaveIt) {
  ApiClient client({}, {.api_keys = {{sha256("key"), "alice"}}, .root_path = "/llm"});
  for (const std::string root : {"", "/llm"}) {
    EXPECT_EQ(client.get(root + "/health").status, 200);
    EXPECT_EQ(client.get(root + "/v1/models").status, 401) << root;
    EXPECT_EQ(client.get(root + "/nothing").status, 404) << root;
    const HttpResponse answer = client.send({.method = "POST",
                                             .path = root + "/v1/completions",
                                             .headers = {{"authorization", "Bearer key"}},
                                             .body = R"({"prompt": "say well"})"});
    EXPECT_EQ(parsed(answer).at("choices").at(0).at("text"), "well") << root;
    EXPECT_THAT(client.get(root + "/").body, HasSubstr(R"(name="root-path" content="/llm">)"));
  }
  EXPECT_THAT(client.get("/llm").body, HasSubstr("<title>Pagoda"));
  EXPECT_EQ(client.get("/llmother/health").status, 404);
  EXPECT_EQ(client.get("/llm/llm/health").status, 404);
  EXPECT_EQ(parsed(client.get("/openapi.json")).at("servers").at(0).at("url"), "/llm");
  EXPECT_FALSE(parsed(ApiClient().get("/openapi.json")).contains("servers"));
}

TEST(Router, ABodyThatIsNotJsonByItsTypeIsRefused) {
  ApiClient client;
  const auto ask = [&](const std::string& path, const std::string& type) {
    return client.send({.method = "POST",
                        .path = path,
                        .headers = {{"content-type", type}},
                        .body = R"({"prompt": "say a"})"});
  };
  for (const char* type : {"text/plain", "multipart/form-data; boundary=x"}) {
    EXPECT_EQ(ask("/v1/completions", type).status, 415) << type;
  }
  EXPECT_EQ(parsed(ask("/tokenize", "text/plain")).at("error").at("message"),
            "Content-Type: expected application/json, got text/plain");
  EXPECT_EQ(ask("/v1/completions", "Application/JSON; charset=utf-8").status, 200);
  const HttpHeaders empty = {{"content-type", "application/octet-stream"}, {"content-length", "0"}};
  EXPECT_EQ(client.send({.method = "POST", .path = "/reset_prefix_cache", .headers = empty}).status,
            200);
}

TEST(Router, ABodyThatIsPackedIsRefused) {
  ApiClient client;
  const auto ask = [&](const std::string& path, const std::string& encoding) {
    return client.send({.method = "POST",
                        .path = path,
                        .headers = {{"content-encoding", encoding}},
                        .body = R"({"prompt": "say a"})"});
  };
  for (const char* path : {"/v1/completions", "/v1/messages", "/api/chat", "/tokenize"})
    EXPECT_EQ(ask(path, "gzip").status, 415) << path;
  EXPECT_EQ(parsed(ask("/tokenize", "br")).at("error").at("message"),
            "Content-Encoding: expected none, got br");
  EXPECT_EQ(ask("/v1/completions", "identity").status, 200);
}

TEST(Router, TokenizesAndBack) {
  ApiClient client;
  const json tokens =
      client.answer("/tokenize", R"({"prompt": "the cat", "return_token_strs": true})");
  EXPECT_EQ(tokens.at("count"), 6);
  EXPECT_EQ(tokens.at("max_model_len"), 2048);
  EXPECT_EQ(tokens.at("token_strs").at(1), "he");
  EXPECT_EQ(client.answer("/detokenize", json{{"tokens", tokens.at("tokens")}}.dump()).at("prompt"),
            "the cat");
  const json chat =
      client.answer("/tokenize", R"({"messages": [{"role": "user", "content": "hi"}]})");
  EXPECT_EQ(client.answer("/detokenize", json{{"tokens", chat.at("tokens")}}.dump()).at("prompt"),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(chat.at("token_strs").is_null());
  EXPECT_EQ(client.answer("/tokenize", R"({"prompt": ""})").at("count"), 0);

  EXPECT_EQ(client.refusal("/tokenize", R"({})").at("param"), "prompt");
  const json pieces = client.answer(
      "/tokenize", R"({"content": "the cat", "with_pieces": true, "add_special": false})");
  std::string joined;
  for (std::size_t i = 0; i < pieces.at("tokens").size(); ++i) {
    EXPECT_EQ(pieces.at("tokens")[i].at("id"), tokens.at("tokens")[i]);
    joined += pieces.at("tokens")[i].at("piece").get<std::string>();
  }
  EXPECT_EQ(joined, "the cat");
  EXPECT_EQ(client.refusal("/tokenize", R"({"content": "a", "prompt": "a"})").at("param"),
            "prompt");
  EXPECT_EQ(client
                .refusal("/tokenize",
                         R"({"prompt": "a", "messages": [{"role": "user", "content": "a"}]})")
                .at("param"),
            "prompt");
  EXPECT_EQ(client.refusal("/tokenize", R"({"prompt": 5})").at("param"), "prompt");
  EXPECT_EQ(client.refusal("/tokenize", R"({"prompt": "a", "model": "none"})", 404).at("param"),
            "model");
  EXPECT_EQ(client.refusal("/detokenize", R"({})").at("param"), "tokens");
  EXPECT_EQ(client.refusal("/detokenize", R"({"tokens": ["a"]})").at("param"), "tokens");
  EXPECT_EQ(client.refusal("/detokenize", R"({"tokens": [99999]})").at("param"), "tokens");
}

TEST(Router, MetricsCountWhatHappened) {
  ApiClient client;
  client.answer("/v1/completions", R"({"prompt": "count 9", "max_tokens": 4, "n": 2})");
  client.answer("/v1/completions", R"({"prompt": "say a"})");
  const HttpResponse response = client.get("/metrics");
  EXPECT_TRUE(response.content_type.starts_with("text/plain; version=0.0.4"));
  for (const char* line : {
           "pagoda:request_success_total{model_name=\"fake-model\",finished_reason=\"length\"} 2\n",
           "pagoda:request_success_total{model_name=\"fake-model\",finished_reason=\"stop\"} 1\n",
           "pagoda:generation_tokens_total{model_name=\"fake-model\"} 10\n",
           "pagoda:prompt_tokens_total{model_name=\"fake-model\"} 12\n",
           "pagoda:iteration_tokens_bucket{model_name=\"fake-model\",le=\"8\"} 0\n",
           "pagoda:iteration_tokens_bucket{model_name=\"fake-model\",le=\"+Inf\"} 0\n",
           "pagoda:iteration_tokens_sum{model_name=\"fake-model\"} 22\n",
           "pagoda:num_requests_running{model_name=\"fake-model\"} 0\n",
           "pagoda:time_to_first_token_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:inter_token_latency_seconds_count{model_name=\"fake-model\"} 7\n",
           "pagoda:e2e_request_latency_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:request_queue_time_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:request_prefill_time_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:request_decode_time_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:request_inference_time_seconds_count{model_name=\"fake-model\"} 3\n",
           "pagoda:kv_cache_usage_perc{model_name=\"fake-model\"} 0\n",
           "pagoda:cache_config_info{block_size=\"16\",cache_dtype=\"k:int8,v:int4\","
           "enable_prefix_caching=\"True\",kv_cache_dtype_skip_layers=\"0,3\","
           "model_name=\"fake-model\",num_gpu_blocks=\"400\",prefix_caching_hash_algo=\"sha256\"} "
           "1\n",
           "# TYPE pagoda:time_to_first_token_seconds histogram\n",
       }) {
    EXPECT_THAT(response.body, HasSubstr(line));
  }
}

TEST(Router, AnswersCountByPathMethodAndStatus) {
  ApiClient client({}, {.root_path = "/llm"});
  for (const AccessRecord& record :
       std::vector<AccessRecord>{{.method = "POST", .path = "/llm/v1/completions", .status = 200},
                                 {.method = "POST", .path = "/v1/completions", .status = 206},
                                 {.method = "GET", .path = "/v1/models/any", .status = 404},
                                 {.method = "BREW", .path = "/pot\n1", .status = 405},
                                 {.method = "", .path = "", .status = 0, .seconds = 400}}) {
    client.router().count_answer(record);
  }
  const std::string metrics = client.get("/llm/metrics").body;
  for (const char* line : {
           "handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 2\n",
           "handler=\"/v1/models/{model}\",method=\"GET\",status=\"4xx\"} 1\n",
           "handler=\"none\",method=\"other\",status=\"4xx\"} 1\n",
           "handler=\"none\",method=\"other\",status=\"none\"} 1\n",
           "http_request_duration_seconds_count{model_name=\"fake-model\","
           "handler=\"/v1/completions\",status=\"2xx\"} 2\n",
           "handler=\"none\",status=\"none\",le=\"300\"} 0\n",
           "handler=\"none\",status=\"none\",le=\"600\"} 1\n",
       }) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST(Router, AnswersThatNobodyWaitsForCountAsAborted) {
  ApiClient client;
  {
    HttpReply dropped =
        client.router().handle({.method = "POST",
                                .path = "/v1/completions",
                                .body = R"({"prompt": "think 9", "n": 3})",
                                .held = std::make_shared<MemoryAccount>(client.service().memory)},
                               [] {});
    std::optional<HttpReply> started;
    while (!started) started = std::get<std::unique_ptr<PendingReply>>(dropped.content)->poll();
  }
  EXPECT_THAT(
      client.get("/metrics").body,
      HasSubstr(
          "pagoda:request_success_total{model_name=\"fake-model\",finished_reason=\"abort\"} 3\n"));
}

TEST(Router, ThePageRunsNothingButItsOwn) {
  ApiClient client;
  const HttpResponse page = client.get("/");
  EXPECT_THAT(page.body, HasSubstr("<title>Pagoda</title>"));
  const auto policy =
      std::find_if(page.headers.begin(), page.headers.end(),
                   [](const auto& header) { return header.first == "Content-Security-Policy"; });
  ASSERT_NE(policy, page.headers.end());
  EXPECT_THAT(policy->second, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(policy->second, ::testing::Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy->second,
              HasSubstr("require-trusted-types-for 'script'; trusted-types 'none'"));
  // Each file has replaced its placeholder in the page.
  EXPECT_THAT(page.body, ::testing::Not(::testing::ContainsRegex(R"(\{\{[a-z_/.-]+\}\})")));
}

TEST(Router, ThePageComesByGzipToThoseWhoTakeIt) {
  ApiClient client;
  const auto get_by = [&](const std::string& codings) {
    const HttpResponse page =
        client.send({.method = "GET", .path = "/", .headers = {{"accept-encoding", codings}}});
    EXPECT_THAT(page.headers, ::testing::Contains(::testing::Pair("Vary", "Accept-Encoding")));
    const bool is_gzip = page.text().starts_with("\x1f\x8b");
    EXPECT_EQ(is_gzip, std::ranges::count(page.headers, std::pair<std::string, std::string>(
                                                            "Content-Encoding", "gzip")) == 1);
    return is_gzip;
  };
  for (const char* const takes : {"gzip", "deflate, GZIP", "gzip;q=0.5", "br,\tgzip ; q=1"}) {
    EXPECT_TRUE(get_by(takes)) << takes;
  }
  for (const char* const refuses :
       {"", "br", "*", "x-gzip2", "gzip;q=0", "gzip; q=0.000", "gzip;q=,br", ",;,", "notgzip"}) {
    EXPECT_FALSE(get_by(refuses)) << refuses;
  }
}

TEST(OpenApi, DescribesTheFieldsThatAreRead) {
  ApiClient client;
  const json document = parsed(client.get("/openapi.json"));
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  const json& schemas = document.at("components").at("schemas");
  const json& completion = schemas.at("CompletionRequest");
  EXPECT_EQ(completion.at("required"), parse_json(R"(["prompt"])"));
  EXPECT_EQ(completion.at("properties").at("top_p").at("maximum"), 1);
  EXPECT_EQ(completion.at("properties").at("dry_base").at("default"), 1.75);
  EXPECT_EQ(completion.at("properties").at("lora_request").at("$ref"),
            "#/components/schemas/NothingAsked");
  EXPECT_EQ(schemas.at("NothingAsked"), parse_json(R"({"anyOf": [
      {"type": "boolean", "enum": [false]},
      {"type": "array", "items": {}, "minItems": 0, "maxItems": 0},
      {"type": "object", "additionalProperties": false},
      {"type": "string", "const": ""}, {"type": "null"}]})"));
  EXPECT_TRUE(schemas.at("ChatCompletionRequest").at("properties").contains("messages"));
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize",
                           "/health", "/metrics"}) {
    EXPECT_TRUE(document.at("paths").contains(path)) << path;
  }
}

}  // namespace
}  // namespace pagoda
