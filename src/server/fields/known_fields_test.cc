#include "server/fields/known_fields.h"

#include <gtest/gtest.h>

#include <set>

#include "core/json.h"
#include "server/anthropic/messages_request.h"
#include "server/base/json_body.h"
#include "server/chat/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/responses/response_request.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

std::string chat_with(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "say a"}], )" + fields + "}";
}

// Returns every name of a table, with aliases. Fails the test where a name is there twice.
std::set<std::string_view> names_of(const std::vector<Field>& table) {
  std::set<std::string_view> names;
  for (const Field& field : table) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    for (const std::string_view alias : field.aliases)
      EXPECT_TRUE(names.insert(alias).second) << alias;
  }
  return names;
}

TEST(KnownFields, TheTableHasEachNameOnce) {
  ChatRequest chat;
  CompletionRequest completion;
  std::set<std::string_view> names = names_of(chat_field_table(chat));
  EXPECT_GE(names.size(), 120u);
  EXPECT_GE(names_of(completion_field_table(completion)).size(), 100u);
  for (const char* name :
       {"top_n_sigma", "repeat_penalty", "n_predict", "samplers", "n_probs", "lora", "num_predict",
        "options", "think", "stop_regex", "return_hidden_states", "no_stop_trim",
        "logits_processors", "tools", "reasoning_effort"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// An endpoint, its table, and the beginning of a body that it takes.
struct Endpoint {
  std::string path;
  std::vector<Field> table;
  std::string body;
};

struct Requests {
  ChatRequest chat;
  CompletionRequest completion;
  ResponseRequest response;
  MessagesRequest messages;
};

// Returns the endpoints. Their targets point into the requests, which must outlive the result.
std::vector<Endpoint> endpoints(Requests& requests) {
  const std::string messages = R"("messages": [{"role": "user", "content": "say a"}])";
  return {{"/v1/chat/completions", chat_field_table(requests.chat), "{" + messages},
          {"/v1/completions", completion_field_table(requests.completion), R"({"prompt": "say a")"},
          {"/v1/responses", response_field_table(requests.response), R"({"input": "say a")"},
          {"/v1/messages", messages_field_table(requests.messages),
           R"({"max_tokens": 50, )" + messages}};
}

std::string body_with(const Endpoint& endpoint, std::string_view name, const json& value) {
  return endpoint.body + ", " + json_text(json(name)) + ": " + json_text(value) + "}";
}

// Posts the body, and returns the answer with the request that the engine got.
json outcome_of(ApiClient& client, const std::string& path, const std::string& body) {
  const json answer = client.answer(path, body);
  const GenerationRequest request = client.engine().last_request();
  const SamplingParams& sampling = request.sampling;
  return {answer.value("choices", json()),
          answer.at("usage"),
          request.prompt_token_ids,
          request.priority,
          request.cache_salt,
          sampling.temperature,
          sampling.top_k,
          sampling.top_p,
          sampling.min_p,
          sampling.repetition_penalty,
          sampling.repeat_last_n.value_or(-2),
          sampling.presence_penalty,
          sampling.frequency_penalty,
          sampling.n,
          sampling.max_tokens,
          sampling.min_tokens,
          sampling.ignore_eos,
          sampling.stop_token_ids,
          sampling.logprobs.has_value()};
}

TEST(KnownFields, WhatIsRefusedIsRefusedByNameAndWhatIsNeutralChangesNothing) {
  ApiClient client;
  Requests requests;
  for (const Endpoint& endpoint : endpoints(requests)) {
    const json plain = outcome_of(client, endpoint.path, endpoint.body + "}");
    std::size_t num_refused = 0;
    std::size_t num_neutral = 0;
    for (const Field& field : endpoint.table) {
      json neutral = json::array({nullptr});
      if (const auto* refused = std::get_if<RefusedField>(&field.target)) {
        ++num_refused;
        json parsed = parse_json(refused->neutral);
        const json error =
            client.refusal(endpoint.path, body_with(endpoint, field.name, {{"no", "such"}}));
        EXPECT_EQ(error.at("param"), field.name);
        EXPECT_EQ(error.at("code"), "unsupported_parameter") << field.name;
        for (json& value : parsed) neutral.push_back(std::move(value));
      } else if (std::holds_alternative<IgnoredField>(field.target)) {
        ++num_neutral;
        neutral = {nullptr, false, 5, "no such", {{"no", "such"}}};
      }
      for (const json& value : neutral) {
        const std::string key = json_text(json(field.name));
        if (endpoint.body.find(key + ":") != std::string::npos) continue;
        EXPECT_EQ(outcome_of(client, endpoint.path, body_with(endpoint, field.name, value)), plain)
            << field.name << " " << value;
      }
    }
    EXPECT_GE(num_refused, 50u);
    EXPECT_GE(num_neutral, 9u);
  }
}

TEST(KnownFields, WhatIsDoneIsReadByEachOfItsNames) {
  ApiClient client;
  Requests requests;
  for (const Endpoint& endpoint : endpoints(requests)) {
    std::size_t num_done = 0;
    for (const Field& field : endpoint.table) {
      if (std::holds_alternative<RefusedField>(field.target) ||
          std::holds_alternative<IgnoredField>(field.target))
        continue;
      std::vector<std::string_view> names = field.aliases;
      names.push_back(field.name);
      for (const std::string_view name : names) {
        ++num_done;
        const auto blames_it = [&](const json& value) {
          const HttpResponse reply = client.post(endpoint.path, body_with(endpoint, name, value));
          if (reply.status == 200) return false;
          const std::string& param = reply.error->param;
          return param == name || param == field.name;
        };
        // No field accepts both values.
        EXPECT_TRUE(blames_it(0.5) || blames_it({{"no", {1}}})) << name;
      }
    }
    EXPECT_GE(num_done, 50u);
  }
}

TEST(KnownFields, FieldsAreWhereTheyBelong) {
  ChatRequest chat;
  CompletionRequest completion;
  const std::set<std::string_view> of_chats = names_of(chat_field_table(chat));
  const std::set<std::string_view> of_completions = names_of(completion_field_table(completion));
  for (const char* name : {"messages", "tools", "chat_template_kwargs", "top_logprobs"}) {
    EXPECT_TRUE(of_chats.contains(name)) << name;
    EXPECT_FALSE(of_completions.contains(name)) << name;
  }
  for (const char* name : {"prompt", "suffix"}) {
    EXPECT_FALSE(of_chats.contains(name)) << name;
    EXPECT_TRUE(of_completions.contains(name)) << name;
  }
  for (const char* name : {"max_completion_tokens", "repeat_penalty", "json_schema", "regex"}) {
    EXPECT_TRUE(of_chats.contains(name)) << name;
    EXPECT_TRUE(of_completions.contains(name)) << name;
  }
}

TEST(KnownFields, NamesOfOtherServersSetWhatTheyMean) {
  ApiClient client;
  client.answer("/v1/completions",
                R"({"prompt": "say a", "n_predict": 7, "repeat_penalty": 1.25, "n_cmpl": 2,
                    "sampling_seed": 5, "min_new_tokens": 1})");
  SamplingParams sampling = client.engine().last_request().sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(sampling.repetition_penalty, 1.25f);
  EXPECT_EQ(sampling.n, 2);
  EXPECT_EQ(sampling.seed, 5u);
  EXPECT_EQ(sampling.min_tokens, 1);
  client.answer("/v1/completions", R"({"prompt": "say a", "n_predict": -1})");
  EXPECT_EQ(client.engine().last_request().sampling.max_tokens, 2048 - 5);
}

TEST(KnownFields, AsManyAnswersMayBeChosenFromAsAreAskedFor) {
  ApiClient client;
  for (const int best_of : {1, 3}) {
    const std::string fields = fmt::format(R"("n": 3, "best_of": {})", best_of);
    EXPECT_EQ(client.answer("/v1/completions", R"({"prompt": "say a", )" + fields + "}")
                  .at("choices")
                  .size(),
              3u);
    client.answer("/v1/chat/completions", chat_with(fields));
  }
  for (const char* fields :
       {R"("n": 3, "best_of": 4)", R"("n": 3, "best_of": 2)", R"("best_of": 2)"}) {
    const json error = client.refusal("/v1/chat/completions", chat_with(fields));
    EXPECT_EQ(error.at("param"), "best_of") << fields;
    EXPECT_EQ(error.at("code"), "unsupported_parameter") << fields;
  }
}

TEST(KnownFields, OllamasOptionsAreTakenAsIfTheyStoodBesideIt) {
  ApiClient client;
  client.answer("/v1/chat/completions",
                chat_with(R"("options": {"temperature": 0.25, "num_ctx": 8192,
      "num_predict": 9, "stop": ["x"], "top_k": null}, "temperature": 0.25, "keep_alive": "5m")"));
  const SamplingParams sampling = client.engine().last_request().sampling;
  EXPECT_EQ(sampling.temperature, 0.25f);
  EXPECT_EQ(sampling.max_tokens, 9);
  EXPECT_EQ(client
                .refusal("/v1/chat/completions",
                         chat_with(R"("options": {"temperature": 0.25}, "temperature": 0.5)"))
                .at("message"),
            "'options.temperature' and 'temperature' mean the same, but their values differ");
}

TEST(KnownFields, UnknownOptionsAreNamedInTheLogAlone) {
  std::vector<std::string> unknown_names;
  RequestJson body = *parse_json_body(chat_with(R"("options": {"mood": 1, "top_k": 3}, "b": 2)"));
  EXPECT_FALSE(lift_options(body, unknown_names));
  EXPECT_EQ(unknown_names, std::vector<std::string>{"options.mood"});
  EXPECT_EQ(body.at("top_k"), 3);
}

TEST(KnownFields, WhatClientsSendByDefaultIsTaken) {
  ApiClient client;
  // Defaults of openai with every optional argument, LangChain, LlamaIndex, LiteLLM, the AI SDK.
  client.answer(
      "/v1/chat/completions",
      chat_with(R"("n": 1, "stream": false, "temperature": 0.7, "tools": [], "tool_choice": "auto",
      "parallel_tool_calls": true, "logprobs": null, "top_logprobs": null, "stream_options": null,
      "user": "u", "seed": null, "stop": null, "response_format": {"type": "text"}, "functions": null,
      "function_call": null, "logit_bias": {}, "metadata": {}, "store": false, "modalities": ["text"],
      "presence_penalty": 0, "frequency_penalty": 0, "max_tokens": null, "best_of": 1,
      "reasoning_effort": null, "verbosity": "low", "extra_body": {})"));
}

}  // namespace
}  // namespace pagoda
