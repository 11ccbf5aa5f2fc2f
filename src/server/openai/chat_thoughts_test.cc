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
  const json stream = streamed(body).at("message");
  EXPECT_EQ(stream.at("content"), "Yes.");
  EXPECT_EQ(stream.at("reasoning_content"), "So.");
  EXPECT_FALSE(choice_of(ask("say Yes.")).at("message").contains("reasoning_content"));
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
  }
  const json message = choice_of(ask(text, {{"include_reasoning", false}})).at("message");
  EXPECT_EQ(message.at("content"), "Yes.");
  EXPECT_FALSE(message.contains("reasoning_content"));
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
