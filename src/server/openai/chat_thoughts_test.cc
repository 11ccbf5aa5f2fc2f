// Thoughts in /v1/chat/completions.
#include <gtest/gtest.h>

#include "server/openai/chat_tools_rig.h"

namespace pagoda {
namespace {

using nlohmann::json;

class ChatThoughtsTest : public ChatToolsTest {
 protected:
  ChatThoughtsTest() {
    client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  }
};

TEST_F(ChatThoughtsTest, ThoughtsComeApart) {
  const json body = ask("say <think>So. </think> Yes.");
  const json message = choice_of(body).at("message");
  EXPECT_EQ(message.at("content"), "Yes.");
  EXPECT_EQ(message.at("reasoning_content"), "So.");
  EXPECT_EQ(message.at("reasoning"), "So.");
  const json stream = streamed(body).at("message");
  EXPECT_EQ(stream.at("content"), "Yes.");
  EXPECT_EQ(stream.at("reasoning_content"), "So.");
  EXPECT_EQ(stream.at("reasoning"), "So.");
  const json thoughtless = choice_of(ask("say Yes.")).at("message");
  for (const char* name : {"reasoning_content", "reasoning"})
    EXPECT_FALSE(thoughtless.contains(name));
}

TEST_F(ChatThoughtsTest, AnAnswerMayEndInAThought) {
  const json choice = choice_of(ask("say <think>So, let me see", {{"max_tokens", 12}}));
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("message").at("content"), "");
  EXPECT_EQ(choice.at("message").at("reasoning_content"),
            streamed(ask("say <think>So, let me see", {{"max_tokens", 12}}))
                .at("message")
                .at("reasoning_content"));
}

TEST_F(ChatThoughtsTest, ClientsChooseWhereThoughtsStand) {
  const std::string text = "say <think>So.</think> Yes.";
  for (const json& raw :
       {json{{"separate_reasoning", false}}, json{{"reasoning_format", "none"}}}) {
    const json message = choice_of(ask(text, raw)).at("message");
    EXPECT_EQ(message.at("content"), "<think>So.</think> Yes.");
    EXPECT_FALSE(message.contains("reasoning_content"));
    EXPECT_FALSE(message.contains("reasoning"));
  }
  const json message = choice_of(ask(text, {{"include_reasoning", false}})).at("message");
  EXPECT_EQ(message.at("content"), "Yes.");
  EXPECT_FALSE(message.contains("reasoning_content"));
  EXPECT_FALSE(message.contains("reasoning"));
}

// A thought may be sent back by either name, whichever the template reads.
TEST_F(ChatThoughtsTest, ThoughtsAreTakenBackByBothNames) {
  const auto body_with = [](const json& thought) {
    json message = thought;
    message["role"] = "assistant";
    message["content"] = "Yes.";
    return json{{"messages",
                 {{{"role", "user"}, {"content", "a"}},
                  message,
                  {{"role", "user"}, {"content", "say b"}}}}};
  };
  for (const char* name : {"reasoning_content", "reasoning"}) {
    set_chat_template(client_.model(), "{% for message in messages %}{{ message['" +
                                           std::string(name) +
                                           "'] }}{{ message['content'] }}|{% endfor %}");
    for (const json& thought : {json{{"reasoning_content", "So."}}, json{{"reasoning", "So."}},
                                json{{"reasoning", "So."}, {"reasoning_content", nullptr}},
                                json{{"reasoning", "So."}, {"reasoning_content", "So."}}})
      EXPECT_EQ(prompt_of(body_with(thought)), "a|So.Yes.|say b|") << thought;
  }
  const json refused =
      refusal_of(body_with({{"reasoning", "So."}, {"reasoning_content", "Else."}}));
  EXPECT_EQ(refused.at("param"), "messages");
  EXPECT_EQ(refused.at("message"),
            "'messages[1].reasoning_content' and 'reasoning' mean the same, but their values "
            "differ");
}

TEST_F(ChatThoughtsTest, TheTemplateIsToldHowToThink) {
  const std::string text =
      "{% for message in messages %}{{ message['content'] }}{% endfor %}{{ enable_thinking }} "
      "{{ reasoning_effort }}";
  set_chat_template(client_.model(), text);
  EXPECT_EQ(prompt_of(ask("a", {{"enable_thinking", true}})), "aTrue ");
  EXPECT_EQ(prompt_of(ask("a", {{"think", false}})), "aFalse ");
  EXPECT_EQ(prompt_of(ask("a", {{"think", "low"}})), "a low");
  EXPECT_EQ(prompt_of(ask("a", {{"reasoning_effort", "none"}})), "aFalse none");
  EXPECT_EQ(prompt_of(ask("a", {{"reasoning_effort", "none"},
                                {"chat_template_kwargs", {{"enable_thinking", 1}}}})),
            "a1 none");
  EXPECT_EQ(refusal_of(ask("a", {{"reasoning_effort", "much"}})).at("param"), "reasoning_effort");
}

}  // namespace
}  // namespace pagoda
