#include "cli/commands/chat_conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  conversation.add_question("one");
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
  conversation.add_question("one");
  OrderedJson message = answer_of("1");
  message["reasoning_content"] = "hm";
  conversation.add_answer(std::move(message));
  EXPECT_EQ(json_text(conversation.messages().back()), R"({"role":"assistant","content":"1"})");
}

TEST(ChatConversationTest, AnAnswerIsTakenBackButNotItsQuestion) {
  ChatConversation conversation;
  EXPECT_FALSE(conversation.take_back_answer());
  conversation.add_question("one");
  conversation.add_answer(answer_of("1"));
  EXPECT_TRUE(conversation.take_back_answer());
  EXPECT_EQ(json_text(conversation.messages()), R"([{"role":"user","content":"one"}])");
  EXPECT_TRUE(conversation.take_back_answer());
  EXPECT_EQ(conversation.messages().size(), 1U);
  conversation.take_back_question();
  EXPECT_TRUE(conversation.empty());
}

TEST(ChatConversationTest, IsSavedAsARequestAndReplacesNoFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "said.json";
  ChatConversation conversation;
  conversation.add_question("one");
  ASSERT_TRUE(save_conversation(conversation, "tiny", file).ok());
  const std::string text =
      "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n";
  EXPECT_EQ(read_text_file(file).value(), text);
  conversation.clear();
  EXPECT_EQ(save_conversation(conversation, "tiny", file).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read_text_file(file).value(), text);
  EXPECT_THAT(save_conversation(conversation, "tiny", file + "/below").message(),
              HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace pagoda
