#include "cli/commands/chat_conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/text_file.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

OrderedJson answer_of(const std::string& text) {
  return {{"role", "assistant"}, {"content", text}};
}

TEST(ChatConversationTest, TurnsStandBehindTheSystemMessage) {
  ChatConversation conversation;
  conversation.add_text("one");
  conversation.add_answer(answer_of("1"));
  EXPECT_EQ(json_text(conversation.messages()),
            R"([{"role":"user","content":"one"},{"role":"assistant","content":"1"}])");
  conversation.set_system("be kind");
  EXPECT_EQ(conversation.messages().size(), 3U);
  EXPECT_EQ(json_text(conversation.messages().front()), R"({"role":"system","content":"be kind"})");
  conversation.clear();
  EXPECT_TRUE(conversation.empty());
  EXPECT_EQ(conversation.messages().size(), 1U);
  conversation.set_system("");
  EXPECT_EQ(json_text(conversation.messages()), "[]");
}

TEST(ChatConversationTest, AThoughtIsNotKept) {
  ChatConversation conversation;
  conversation.add_text("one");
  OrderedJson message = answer_of("1");
  message["reasoning_content"] = "hm";
  conversation.add_answer(std::move(message));
  EXPECT_EQ(json_text(conversation.messages().back()), R"({"role":"assistant","content":"1"})");
}

TEST(ChatConversationTest, AnAnswerIsTakenBackButNotItsQuestion) {
  ChatConversation conversation;
  EXPECT_FALSE(conversation.take_back_answer());
  conversation.add_text("one");
  conversation.add_answer(answer_of("1"));
  EXPECT_TRUE(conversation.take_back_answer());
  EXPECT_EQ(json_text(conversation.messages()), R"([{"role":"user","content":"one"}])");
  EXPECT_TRUE(conversation.take_back_answer());
  EXPECT_EQ(conversation.messages().size(), 1U);
  conversation.take_back_texts();
  EXPECT_TRUE(conversation.empty());
}

OrderedJson calls_of(const std::vector<std::string>& functions) {
  OrderedJson message = answer_of("");
  for (const std::string& name : functions)
    message["tool_calls"].push_back({{"function", {{"name", name}, {"arguments", "{}"}}}});
  return message;
}

TEST(ChatConversationTest, WhatIsSaidBehindCallsIsTheirResults) {
  ChatConversation conversation;
  EXPECT_FALSE(conversation.next_call());
  conversation.add_text("one");
  EXPECT_FALSE(conversation.next_call());
  conversation.add_answer(calls_of({"f", "g"}));
  EXPECT_EQ(conversation.next_call(), "f");
  conversation.add_text("of f");
  EXPECT_EQ(conversation.next_call(), "g");
  conversation.add_text("of g");
  EXPECT_FALSE(conversation.next_call());
  EXPECT_EQ(json_text(conversation.messages().back()), R"({"role":"tool","content":"of g"})");
  conversation.add_answer(answer_of("2"));
  EXPECT_FALSE(conversation.next_call());
  conversation.add_text("two");
  EXPECT_EQ(conversation.messages().back().at("role"), "user");
  conversation.take_back_texts();
  EXPECT_EQ(conversation.messages().size(), 5U);
  EXPECT_TRUE(conversation.take_back_answer());  // the results are still there
  EXPECT_EQ(conversation.messages().size(), 4U);
}

TEST(ChatConversationTest, CallsThatLackAResultAreTakenBackWhole) {
  ChatConversation conversation;
  conversation.add_text("one");
  conversation.add_answer(calls_of({"f", "g"}));
  conversation.add_text("of f");
  EXPECT_TRUE(conversation.take_back_answer());
  EXPECT_EQ(json_text(conversation.messages()), R"([{"role":"user","content":"one"}])");
}

TEST(ChatConversationTest, IsSavedAsARequestAndReplacesNoFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "said.json";
  ChatConversation conversation;
  conversation.add_text("one");
  ASSERT_TRUE(save_conversation(conversation, "tiny", nullptr, file).ok());
  const std::string text =
      "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n";
  EXPECT_EQ(read_text_file(file).value(), text);
  const std::string other = folder / "tools.json";
  ASSERT_TRUE(save_conversation(conversation, "tiny", OrderedJson::array(), other).ok());
  EXPECT_THAT(read_text_file(other).value(), HasSubstr(R"(,"tools":[]})"));
  conversation.clear();
  EXPECT_EQ(save_conversation(conversation, "tiny", nullptr, file).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(read_text_file(file).value(), text);
  EXPECT_THAT(save_conversation(conversation, "tiny", nullptr, file + "/below").message(),
              HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace pagoda
