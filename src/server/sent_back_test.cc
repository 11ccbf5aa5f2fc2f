// Answers of a scripted model, by each API, whole and streamed, and sent back: streams tell what
// whole answers tell, the APIs tell the same, and no answer is refused where it came from.
#include <gtest/gtest.h>

#include <map>
#include <span>

#include "server/sent_back_rig.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

constexpr int kNumTokens = 1000;  // more than any of the answers has

// Prints all that it gets but ids, which differ between two answers.
constexpr std::string_view kPrintsAll =
    "{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}]{% endfor %}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n";

constexpr std::string_view kKnowsNoTools =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n";

// Finds calls by their absent content, as DeepSeek's templates do.
constexpr std::string_view kTellsCallsByContent =
    "{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}"
    "[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
    "{% else %}{{ m.content + '' }}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

// Refuses rows of one role, empty answers, calls without results, and results without calls.
constexpr std::string_view kIsStrict =
    "{{ tools | tojson if tools }}{% for m in messages %}"
    "{% if not loop.first %}{% set before = messages[loop.index0 - 1] %}"
    "{% if before.role == 'assistant' and before.tool_calls and m.role != 'tool' %}"
    "{{ raise_exception('no result') }}{% endif %}"
    "{% if before.role == 'assistant' and not before.content and not before.tool_calls %}"
    "{{ raise_exception('empty') }}{% endif %}"
    "{% if m.role == 'tool' and before.role == 'user' %}{{ raise_exception('no call') }}{% endif %}"
    "{% if before.role == m.role and m.role != 'tool' %}{{ raise_exception('alternate') }}"
    "{% endif %}{% endif %}<|im_start|>{{ m.role }}\n"
    "{{ m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}]{% endfor %}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n";

constexpr std::string_view kBeginsThoughts =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>\n";

class SentBackTest : public ::testing::Test {
 protected:
  SentBackTest() {
    apis_.push_back(chat_completions_under_test());
    apis_.push_back(responses_under_test());
    apis_.push_back(stored_responses_under_test());
    apis_.push_back(messages_under_test());
    apis_.push_back(ollama_under_test());
  }

  // The answer of one API, and the prompt behind that.
  struct Exchange {
    ToldAnswer told;
    std::string next_prompt;
  };

  // Asks an API twice for a scripted answer, and sends both back.
  Exchange exchange(const ApiUnderTest& api, const ScriptedAnswer& script, int max_tokens) {
    SCOPED_TRACE(api.path());
    *answer_ = script.text;
    client_.model().answer_format.tool_syntax = script.syntax;
    OrderedJson request = api.first_request(script, max_tokens);
    const OrderedJson whole = api.answer_in(parse_ordered_json(body_of(api, request)));
    request["stream"] = true;
    const OrderedJson stream = api.assembled(events_in(body_of(api, request)));
    const ToldAnswer told = api.told(whole);
    EXPECT_EQ(api.told(stream), told);
    answer_->clear();
    const std::string prompt = next_prompt(api, whole);
    EXPECT_EQ(next_prompt(api, stream), prompt);
    return {without_spaces(told), prompt};
  }

  // Returns what the answers are in each API, in the order of apis_.
  void check(const ScriptedAnswer& script, int max_tokens = kNumTokens) {
    SCOPED_TRACE(testing::PrintToString(script.text) + " " + std::to_string(max_tokens));
    std::vector<Exchange> all;
    for (const auto& api : apis_) all.push_back(exchange(*api, script, max_tokens));
    EXPECT_EQ(all[1].told, all[0].told);
    EXPECT_EQ(all[2].next_prompt, all[1].next_prompt);
    EXPECT_EQ(all[4].told, all[3].told);
    EXPECT_EQ(all[4].next_prompt, all[3].next_prompt);
    // Messages and Ollama's chats have no place for a call that broke off.
    if (all[0].told.has_broken_call) return;
    EXPECT_EQ(all[3].told, all[0].told);
    EXPECT_EQ(all[1].next_prompt, all[0].next_prompt);
    // In words, arguments that are a text stay as the model wrote them, and objects do not.
    if (client_.model().template_traits.tool_variable != ToolVariable::kNone) {
      EXPECT_EQ(all[3].next_prompt, all[0].next_prompt);
    }
  }

  void check_all(std::string_view chat_template) {
    set_chat_template(client_.model(), chat_template);
    int num_answers = 0;
    const std::span<const ScriptedAnswer> groups[] = {
        kPlainAnswers, kThoughtAnswers, kHermesAnswers, kXmlAnswers,
        kLlamaAnswers, kPythonAnswers,  kMistralAnswers};
    for (const std::span<const ScriptedAnswer> scripts : groups) {
      for (const ScriptedAnswer& script : scripts) {
        check(script);
        ++num_answers;
      }
    }
    EXPECT_GE(num_answers, 119);
  }

  // Cuts an answer off after each few tokens.
  void check_cuts(const ScriptedAnswer& script) {
    for (int max_tokens = 1; max_tokens < static_cast<int>(script.text.size()); max_tokens += 7)
      check(script, max_tokens);
  }

  std::shared_ptr<std::string> answer_ = std::make_shared<std::string>();
  ApiClient client_{{.max_model_len = 1 << 17, .thinks = true, .answer = answer_}};
  std::vector<std::unique_ptr<ApiUnderTest>> apis_;

 private:
  std::string body_of(const ApiUnderTest& api, const OrderedJson& request) {
    const HttpResponse response = client_.post(api.path(), json_text(request));
    EXPECT_EQ(response.status, 200) << json_text(request);
    return std::string(response.text());
  }

  std::string next_prompt(const ApiUnderTest& api, const OrderedJson& answer) {
    body_of(api, api.next_request(answer));
    const std::string prompt = client_.last_prompt();
    EXPECT_NE(prompt.find(kNextQuestion), std::string::npos) << prompt;
    return prompt;
  }
};

TEST_F(SentBackTest, ByATemplateThatPrintsAll) {
  check_all(kPrintsAll);
}

TEST_F(SentBackTest, ByATemplateThatKnowsNoTools) {
  check_all(kKnowsNoTools);
}

TEST_F(SentBackTest, ByATemplateThatTellsCallsByTheirContent) {
  check_all(kTellsCallsByContent);
}

TEST_F(SentBackTest, ByAStrictTemplate) {
  check_all(kIsStrict);
}

TEST_F(SentBackTest, ByATemplateThatBeginsThoughts) {
  set_chat_template(client_.model(), kBeginsThoughts);
  for (const ScriptedAnswer& script : kThoughtAnswers) check(script);
}

TEST_F(SentBackTest, CutOffAnywhere) {
  set_chat_template(client_.model(), kPrintsAll);
  for (const ScriptedAnswer& script :
       {kPlainAnswers[6], kThoughtAnswers[6], kThoughtAnswers[16], kHermesAnswers[0],
        kHermesAnswers[4], kXmlAnswers[0], kLlamaAnswers[1], kPythonAnswers[0], kMistralAnswers[1],
        kMistralAnswers[6]})
    check_cuts(script);
}

// The client's own JSON keeps the order, so a stream's arguments are sent back in it.
TEST_F(SentBackTest, ArgumentsKeepTheOrderInWhichTheyAreWritten) {
  *answer_ =
      R"(<tool_call>{"name": "f", "arguments": {"b": 1, "a": {"d": 2, "c": 3}}}</tool_call>)";
  for (const auto& api : {messages_under_test(), ollama_under_test()}) {
    const std::string body =
        client_.post(api->path(), json_text(api->first_request({}, kNumTokens))).body;
    EXPECT_NE(body.find(R"({"b":1,"a":{"d":2,"c":3}})"), std::string::npos) << body;
  }
}

TEST_F(SentBackTest, CompletionsStreamTheWholeText) {
  for (const ScriptedAnswer& script : kPlainAnswers) {
    *answer_ = script.text;
    OrderedJson request = {{"prompt", kQuestion}, {"max_tokens", kNumTokens}};
    if (!script.stop.empty()) request["stop"] = script.stop;
    const auto text_in = [](const OrderedJson& body) {
      return text_at(body.at("choices").at(0), "text");
    };
    const HttpResponse whole = client_.post("/v1/completions", json_text(request));
    request["stream"] = true;
    std::string streamed;
    for (const OrderedJson& event :
         events_in(client_.post("/v1/completions", json_text(request)).body))
      streamed += text_in(event);
    EXPECT_EQ(streamed, text_in(parse_ordered_json(whole.body)));
  }
}

}  // namespace
}  // namespace pagoda
