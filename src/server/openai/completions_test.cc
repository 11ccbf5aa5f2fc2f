#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/api_client.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kCompletions = "/v1/completions";

class CompletionsTest : public ::testing::Test {
 protected:
  json first_choice(const std::string& body) {
    return client_.answer(kCompletions, body).at("choices").at(0);
  }
  json refusal(const std::string& body) { return client_.refusal(kCompletions, body); }
  SamplingParams sampling_of(const std::string& body) {
    client_.answer(kCompletions, body);
    return client_.engine().last_request().sampling;
  }

  using BadBodies = std::vector<std::pair<std::string, std::string>>;  // and the field at fault
  void expect_refused(const BadBodies& cases) {
    for (const auto& [body, param] : cases) {
      const json error = refusal(body);
      EXPECT_EQ(error.at("param"), param) << body;
      EXPECT_EQ(error.at("type"), "invalid_request_error");
    }
  }

  ApiClient client_;
};

TEST_F(CompletionsTest, AnswersInOpenAisShape) {
  const json body = client_.answer(
      kCompletions, R"({"prompt": "say hello", "model": "other-name", "user": "me"})");
  EXPECT_TRUE(body.at("id").get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("model"), "other-name");
  EXPECT_TRUE(body.at("system_fingerprint").get<std::string>().starts_with("pagoda-"));
  EXPECT_EQ(body.at("choices"), parse_json(R"([{"index": 0, "text": "hello", "logprobs": null,
                                                 "finish_reason": "stop", "stop_reason": null}])"));
  const json& usage = body.at("usage");
  EXPECT_EQ(usage.at("completion_tokens"), 5);  // he, l, l, o, and the end
  EXPECT_EQ(usage.at("total_tokens"), usage.at("prompt_tokens").get<int>() + 5);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), 0);
}

TEST_F(CompletionsTest, SixteenTokensWhereNothingIsSaid) {
  const json body = client_.answer(kCompletions, R"({"prompt": "count 100"})");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 16);
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
}

TEST_F(CompletionsTest, DefaultsAreTheCheckpointsAndThenVllms) {
  const SamplingParams silent = sampling_of(R"({"prompt": "say a"})");
  EXPECT_EQ(silent.temperature, 0.5f);
  EXPECT_EQ(silent.top_p, 1.0f);
  EXPECT_EQ(silent.top_k, 0);
  const SamplingParams said =
      sampling_of(R"({"prompt": "say a", "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1,
      "seed": -7, "presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.5, "min_tokens": 2,
      "max_tokens": 9, "stop_token_ids": [3], "logprobs": 2, "prompt_logprobs": 1})");
  EXPECT_EQ(said.temperature, 0.0f);
  EXPECT_EQ(said.top_p, 0.5f);
  EXPECT_EQ(said.top_k, 0);
  EXPECT_EQ(said.min_p, 0.1f);
  EXPECT_EQ(said.seed, static_cast<std::uint64_t>(-7));
  EXPECT_EQ(said.presence_penalty, 1.0f);
  EXPECT_EQ(said.frequency_penalty, -1.0f);
  EXPECT_EQ(said.repetition_penalty, 1.5f);
  EXPECT_EQ(said.min_tokens, 2);
  EXPECT_EQ(said.max_tokens, 9);
  EXPECT_EQ(said.stop_token_ids, std::vector<int>{3});
  EXPECT_EQ(said.logprobs, 2);
  EXPECT_EQ(said.prompt_logprobs, 1);
}

TEST_F(CompletionsTest, TheSeedIsToldAndOneForAllPrompts) {
  const auto expect_seed = [&](std::int64_t seed, const std::string& more) {
    const HttpResponse response = client_.post(
        kCompletions, R"({"prompt": ["say a", "say b"], "max_tokens": 1)" + more + "}");
    EXPECT_THAT(response.headers, Contains(Pair("X-Seed", std::to_string(seed)))) << response.body;
    const auto used = client_.engine().last_request().sampling.seed;
    EXPECT_EQ(used, static_cast<std::uint64_t>(seed));
  };
  expect_seed(41, R"(, "seed": 41)");
  expect_seed(-7, R"(, "seed": -7, "stream": true)");
  expect_seed(1, "");  // the fake engine draws 1, 2 and 3
  expect_seed(2, R"(, "seed": -1)");
  expect_seed(3, R"(, "stream": true)");
}

TEST_F(CompletionsTest, LlamaCppsSamplingFieldsAreHonoured) {
  const SamplingParams silent = sampling_of(R"({"prompt": "say a"})");
  EXPECT_EQ(silent.dry_multiplier, 0.0f);
  EXPECT_EQ(silent.typical_p, 1.0f);
  EXPECT_EQ(silent.xtc_probability, 0.0f);
  EXPECT_EQ(silent.mirostat, 0);
  EXPECT_EQ(silent.repeat_last_n, std::nullopt);
  EXPECT_EQ(silent.dynatemp_range, 0.0f);
  EXPECT_EQ(silent.token_rules, nullptr);
  const SamplingParams said = sampling_of(R"({"prompt": "say a", "dynatemp_range": 0.25,
      "dynatemp_exponent": 1.5, "typical_p": 0.75, "xtc_probability": 0.5, "xtc_threshold": 0.125,
      "mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.25, "dry_multiplier": 0.5, "dry_base": 2,
      "dry_allowed_length": 3, "dry_penalty_last_n": 64,
      "repeat_last_n": 32})");
  EXPECT_EQ(said.dynatemp_range, 0.25f);
  EXPECT_EQ(said.dynatemp_exponent, 1.5f);
  EXPECT_EQ(said.typical_p, 0.75f);
  EXPECT_EQ(said.xtc_probability, 0.5f);
  EXPECT_EQ(said.xtc_threshold, 0.125f);
  EXPECT_EQ(said.mirostat, 2);
  EXPECT_EQ(said.mirostat_tau, 3.0f);
  EXPECT_EQ(said.mirostat_eta, 0.25f);
  EXPECT_EQ(said.dry_multiplier, 0.5f);
  EXPECT_EQ(said.dry_base, 2.0f);
  EXPECT_EQ(said.dry_allowed_length, 3);
  EXPECT_EQ(said.dry_penalty_last_n, 64);
  EXPECT_EQ(said.repeat_last_n, 32);
}

TEST_F(CompletionsTest, RulesForTokensAreHonoured) {
  const auto rules_of = [this](const std::string& fields) {
    return sampling_of(R"({"prompt": "say a", )" + fields + "}").token_rules;
  };
  const auto biases = rules_of(R"("logit_bias": {"97": -100, "98": 2.5, "99": false})");
  ASSERT_EQ(biases->logit_bias.size(), 3u);
  EXPECT_EQ(biases->logit_bias[0].token_id, 97);
  EXPECT_EQ(biases->logit_bias[0].bias, -100.0f);
  EXPECT_EQ(biases->logit_bias[1].bias, 2.5f);
  EXPECT_EQ(biases->logit_bias[2].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(rules_of(R"("allowed_token_ids": [98, 97, 98])")->allowed_tokens,
            mask_of(std::vector<int>{97, 98}, client_.model().tokenizer->vocab_size()));
  // "in" is one token, and so is a space. After a space, a word has one token more than without, so
  // that spelling is not added.
  EXPECT_EQ(rules_of(R"("bad_words": ["ab", " in", " "])")->bad_words,
            (std::vector<std::vector<int>>{
                {97, 98}, client_.model().tokenizer->encode("in").value(), {32}}));
  EXPECT_EQ(rules_of(R"("logit_bias": null, "bad_words": null, "allowed_token_ids": null)"),
            nullptr);
}

TEST_F(CompletionsTest, SequenceBreakersAreTheTokensThatHoldThem) {
  const auto breakers_of = [this](const std::string& fields) {
    return sampling_of(R"({"prompt": "say a", "dry_multiplier": 1, )" + fields + "}")
        .token_rules->dry_sequence_breakers;
  };
  const std::vector<int> of_h = breakers_of(R"("dry_sequence_breakers": ["h"])");
  EXPECT_THAT(of_h,
              ::testing::IsSupersetOf({104, client_.model().tokenizer->encode("he").value()[0]}));
  EXPECT_TRUE(std::is_sorted(of_h.begin(), of_h.end()));
  // No token has both letters, so the breaker is the last token of the string.
  EXPECT_EQ(breakers_of(R"("dry_sequence_breakers": ["xz"])"), std::vector<int>{'z'});
  EXPECT_THAT(breakers_of(R"("seed": 1)"), ::testing::IsSupersetOf({'\n', ':', '"', '*'}));
  EXPECT_EQ(sampling_of(R"({"prompt": "say a", "dry_multiplier": 1, "dry_sequence_breakers": []})")
                .token_rules,
            nullptr);
}

TEST_F(CompletionsTest, LogprobsHaveTextOffsetsInCharacters) {
  const json logprobs = first_choice(R"({"prompt": "say é in", "logprobs": 1})").at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"),
            parse_json(R"(["bytes:\\xc3", "bytes:\\xa9", " ", "in", "<|im_end|>"])"));
  EXPECT_EQ(logprobs.at("text_offset"), parse_json("[0, 1, 1, 2, 4]"));
  EXPECT_EQ(logprobs.at("token_logprobs").at(2), FakeEngine::logprob_of(32));
  EXPECT_EQ(logprobs.at("top_logprobs").at(3).at("in"), logprobs.at("token_logprobs").at(3));
}

TEST_F(CompletionsTest, StopStringsAndIdsAreNamed) {
  const json by_string = first_choice(R"({"prompt": "count 9", "stop": " 3"})");
  EXPECT_EQ(by_string.at("text"), "1 2");
  EXPECT_EQ(by_string.at("stop_reason"), " 3");
  const json by_id =
      first_choice(R"({"prompt": "count 9", "stop": ["x"], "stop_token_ids": [51]})");
  EXPECT_EQ(by_id.at("text"), "1 2 ");
  EXPECT_EQ(by_id.at("finish_reason"), "stop");
  EXPECT_EQ(by_id.at("stop_reason"), 51);
}

TEST_F(CompletionsTest, TokensAreNamedByIdOnRequest) {
  const json choice =
      first_choice(R"({"prompt": "say a", "logprobs": 0, "return_tokens_as_token_ids": true})");
  EXPECT_EQ(choice.at("logprobs").at("tokens").at(0), "token_id:97");
}

TEST_F(CompletionsTest, StreamsTheSameAnswer) {
  const auto events = client_.events(
      kCompletions, R"({"prompt": "say the 猫", "stream": true, "echo": true, "logprobs": 1,
      "return_token_ids": true, "stream_options": {"include_usage": true}})");
  const json whole = client_.answer(
      kCompletions,
      R"({"prompt": "say the 猫", "echo": true, "logprobs": 1, "return_token_ids": true})");
  std::string text;
  json tokens = json::array(), offsets = json::array(), ids = json::array();
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_TRUE(events[i].at("usage").is_null());
    EXPECT_EQ(events[i].at("id"), events[0].at("id"));
    const json& choice = events[i].at("choices").at(0);
    text += choice.at("text").get<std::string>();
    for (const json& token : choice.at("logprobs").at("tokens")) tokens.push_back(token);
    for (const json& offset : choice.at("logprobs").at("text_offset")) offsets.push_back(offset);
    for (const json& id : choice.at("token_ids")) ids.push_back(id);
    EXPECT_EQ(choice.contains("prompt_token_ids"), i == 0);
    EXPECT_EQ(choice.at("finish_reason").is_null(), i + 2 < events.size());
  }
  const json& choice = whole.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), text);
  EXPECT_EQ(tokens, choice.at("logprobs").at("tokens"));
  EXPECT_EQ(offsets, choice.at("logprobs").at("text_offset"));
  EXPECT_EQ(ids, choice.at("token_ids"));
  EXPECT_TRUE(events.back().at("choices").empty());
  EXPECT_EQ(events.back().at("usage"), whole.at("usage"));
}

TEST_F(CompletionsTest, AStreamThatFailsSaysSo) {
  const auto events =
      client_.events(kCompletions, R"({"prompt": "fail it broke", "stream": true})");
  EXPECT_EQ(events.back().at("error").at("message"), "it broke");
  EXPECT_EQ(client_.refusal(kCompletions, R"({"prompt": "fail it broke"})", 500).at("message"),
            "it broke");
}

TEST_F(CompletionsTest, BadInputIsRefusedByName) {
  const BadBodies cases = {
      {R"({})", "prompt"},
      {R"({"prompt": ""})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"prompt": [[]]})", "prompt"},
      {R"({"prompt": [1, "a"]})", "prompt"},
      {R"({"prompt": ["a", [1]] , "n": 0})", "n"},
      {R"({"prompt": {"a": 1}})", "prompt"},
      {R"({"prompt": [100000]})", "prompt"},
      {R"({"prompt": [-1]})", "prompt"},
      {R"({"prompt": [1.5]})", "prompt"},
      {R"({"prompt": "a", "max_tokens": 0})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": "10"})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": 5, "n_predict": 6})", "n_predict"},
      {R"({"prompt": "a", "max_completion_tokens": 5, "options": {"num_predict": 6}})",
       "n_predict"},
      {R"({"prompt": "a", "repetition_penalty": 1.5, "repeat_penalty": 2})", "repeat_penalty"},
      {R"({"prompt": "a", "n_predict": 0})", "n_predict"},
      {R"({"prompt": "a", "options": {"temperature": 1}, "temperature": 0})", "temperature"},
      {R"({"prompt": "a", "top_n_sigma": 1})", "top_n_sigma"},
      {R"({"prompt": "a", "cache_salt": ")" + std::string(1025, 'x') + R"("})", "cache_salt"},
      {R"({"prompt": "a", "stop_token_ids": )" + nlohmann::json(std::vector<int>(129, 1)).dump() +
           "}",
       "stop_token_ids"},
      {R"({"prompt": "a", "temperature": -1})", "temperature"},
      {R"({"prompt": "a", "top_p": 0})", "top_p"},
      {R"({"prompt": "a", "logprobs": 21})", "logprobs"},
      {R"({"prompt": "a", "logprobs": true})", "logprobs"},
      {R"({"prompt": "a", "stop": [1]})", "stop"},
      {R"({"prompt": "a", "stop": ""})", "stop"},
      {R"({"prompt": "a", "stop": ")" + std::string(5000, 'x') + R"("})", "stop"},
      {R"({"prompt": )" + nlohmann::json(std::vector<std::string>(1000, "a")).dump() +
           R"(, "n": 5})",
       "n"},
      {R"({"prompt": "a", "stream": "yes"})", "stream"},
      {R"({"prompt": "a", "stream_options": {}})", "stream_options"},
      {R"({"prompt": "a", "stream": true, "stream_options": {"include_usage": 1}})",
       "stream_options.include_usage"},
      {R"({"prompt": "a", "stream": true, "prompt_logprobs": 1})", "prompt_logprobs"},
      {R"({"prompt": "a", "cache_salt": 1})", "cache_salt"},
      {R"({"prompt": "a", "priority": "high"})", "priority"},
      {R"({"prompt": "a", "response_format": {"type": "grammar"}})", "response_format"},
      {R"({"prompt": "a", "best_of": 2})", "best_of"},
      {R"({"prompt": "a", "use_beam_search": true})", "use_beam_search"},
  };
  expect_refused(cases);
  EXPECT_EQ(client_.engine().stats().num_finished_requests, 0u);
}

TEST_F(CompletionsTest, BadSamplingFieldsAreRefusedByName) {
  expect_refused({
      {R"({"prompt": "a", "logit_bias": {"5": 101}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"5": true}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"-1": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"99999999999": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"300": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": [[5, 1]]})", "logit_bias"},
      {R"({"prompt": "a", "bad_words": "x"})", "bad_words"},
      {R"({"prompt": "a", "bad_words": [""]})", "bad_words"},
      {R"({"prompt": "a", "bad_words": [")" + std::string(20000, 'x') + R"("]})", "bad_words"},
      {R"({"prompt": "a", "allowed_token_ids": []})", "allowed_token_ids"},
      {R"({"prompt": "a", "allowed_token_ids": [-1]})", "allowed_token_ids"},
      {R"({"prompt": "a", "allowed_token_ids": [5, 300]})", "allowed_token_ids"},
      {R"({"prompt": "a", "dry_sequence_breakers": [")" + std::string(41, 'x') + R"("]})",
       "dry_sequence_breakers"},
      {R"({"prompt": "a", "dry_multiplier": -1})", "dry_multiplier"},
      {R"({"prompt": "a", "dry_base": 0.5})", "dry_base"},
      {R"({"prompt": "a", "dry_allowed_length": 0})", "dry_allowed_length"},
      {R"({"prompt": "a", "dry_penalty_last_n": -2})", "dry_penalty_last_n"},
      {R"({"prompt": "a", "repeat_last_n": -2})", "repeat_last_n"},
      {R"({"prompt": "a", "repeat_last_n": 1.5})", "repeat_last_n"},
      {R"({"prompt": "a", "typical_p": 0})", "typical_p"},
      {R"({"prompt": "a", "xtc_probability": 1.5})", "xtc_probability"},
      {R"({"prompt": "a", "xtc_threshold": -0.1})", "xtc_threshold"},
      {R"({"prompt": "a", "mirostat": 3})", "mirostat"},
      {R"({"prompt": "a", "mirostat": "2"})", "mirostat"},
      {R"({"prompt": "a", "mirostat_tau": -1})", "mirostat_tau"},
      {R"({"prompt": "a", "mirostat_eta": 2})", "mirostat_eta"},
      {R"({"prompt": "a", "dynatemp_range": -1})", "dynatemp_range"},
      {R"({"prompt": "a", "dynatemp_exponent": -1})", "dynatemp_exponent"},
  });
}

TEST_F(CompletionsTest, NeutralValuesAreAccepted) {
  client_.answer(
      kCompletions,
      R"({"prompt": "a", "logit_bias": {}, "bad_words": [], "mirostat": 0, "response_format": {"type": "text"},
                            "best_of": 1, "suffix": null, "use_beam_search": false, "nobody_knows": 1, "metadata": {"a": 1}})");
}

TEST_F(CompletionsTest, AModelThatIsNotServedIs404) {
  const json error = client_.refusal(kCompletions, R"({"prompt": "a", "model": "gpt-9"})", 404);
  EXPECT_EQ(error.at("code"), "model_not_found");
  EXPECT_EQ(error.at("param"), "model");
}

TEST_F(CompletionsTest, ADeadEngineIs503) {
  client_.engine().set_healthy(false);
  const HttpResponse response = client_.post(kCompletions, R"({"prompt": "a"})");
  EXPECT_EQ(response.status, 503);
}

}  // namespace
}  // namespace pagoda
