// Talks on behind answers with thoughts and calls, as `pagoda chat` does, by the chat templates of
// 70 models. tools/fetch_chat_templates.py fetches the templates.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/answer_printer.h"
#include "cli/commands/chat_conversation.h"
#include "cli/commands/timed_generation.h"
#include "cli/flags/prompt_spec.h"
#include "core/text_file.h"
#include "serving/answer_reader.h"
#include "tests/support/fake_model.h"
#include "text/golden_files.h"

namespace pagoda {
namespace {

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "find_place",
    "description": "F.", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}}])";

const char* const kAnswers[] = {
    R"(Beta <tool_call>{"name": "find_place", "arguments": {"place": "Zeta"}}</tool_call><tool_call>{"name": "find_place", "arguments": {"place": "Eta"}}</tool_call>)",
    R"(<think>Hm.</think><tool_call>{"name": "find_place", "arguments": {"place": "Zeta"}}</tool_call>)",
    R"(<tool_call>{"name": "find_place", "arguments": {"place": "Ze)",
    "<think>Hm.</think>Beta",
};

class ChatSecondTurnTest : public ::testing::Test {
 protected:
  ChatSecondTurnTest() { spec_.tools = kTools; }

  // One template refuses all conversations without variables of its own.
  bool takes_tools() const {
    const char* const empty =
        R"([{"type": "function", "function": {"name": "f", "description": "F.",
                                  "parameters": {"type": "object", "properties": {}}}}])";
    return model_->chat_template
        ->render(
            {.messages_json = R"([{"role": "user", "content": "Alpha"}])", .tools_json = empty})
        .ok();
  }

  // Answers what was said. The prompt is kept in prompt_.
  void answer(ChatConversation& conversation) {
    const auto request = make_chat_request(*model_, spec_, conversation.messages());
    ASSERT_TRUE(request.ok()) << request.status().message();
    prompt_ = model_->tokenizer->decode(request->text.generation.prompt_token_ids, false).value();
    auto generation = TextGeneration::start(*model_, request->text, [] {});
    ASSERT_TRUE(generation.ok());
    AnswerReader reader(request->parsing);
    std::vector<AnswerPart> parts;
    const auto keep = [&](const TextPiece& piece) {
      for (AnswerPart& part : reader.parts_of(piece)) parts.push_back(std::move(part));
    };
    ASSERT_TRUE(collect(**generation, Clock::system().now(), keep).ok());
    conversation.add_answer(message_of(parts));
  }

  // Talks for three turns. Where a template begins a thought, a whole answer may be one.
  void talk() {
    ChatConversation conversation;
    conversation.set_system("Delta");
    conversation.add_text("Alpha");
    const char* said = "Alpha";
    for (int turn = 0; turn < 3; ++turn) {
      answer(conversation);
      if (HasFatalFailure()) return;
      for (const char* text : {"Delta", said})
        EXPECT_NE(prompt_.find(text), std::string::npos) << text << " is not in " << prompt_;
      EXPECT_EQ(prompt_.find("Hm."), std::string::npos) << prompt_;
      said = conversation.next_call() ? "Rho" : "Omega";
      num_calls_ += conversation.next_call() ? 1 : 0;
      do {
        conversation.add_text(said);
      } while (conversation.next_call());
    }
  }

  std::shared_ptr<std::string> answer_ = std::make_shared<std::string>();
  std::unique_ptr<ServedModel> model_ =
      make_fake_model({.max_model_len = 1 << 17, .thinks = true, .answer = answer_});
  PromptSpec spec_;
  std::string prompt_;
  int num_calls_ = 0;  // of all templates' answers, those with calls
};

TEST_F(ChatSecondTurnTest, EachTemplatePrintsResultsAndNoThoughts) {
  const OrderedJson goldens = read_golden("jinja_goldens.json");
  const std::filesystem::path folder = chat_templates_folder(goldens);
  ASSERT_TRUE(std::filesystem::is_directory(folder)) << "no chat templates in " << folder;
  int num_templates = 0;
  for (const auto& [name, golden] : goldens["templates"].items()) {
    set_chat_template(*model_, read_text_file(folder / name).value());
    if (!takes_tools()) continue;
    ++num_templates;
    for (const char* text : kAnswers) {
      SCOPED_TRACE(name + ", " + text);
      *answer_ = text;
      talk();
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(num_templates, 69);
  EXPECT_GE(num_calls_, 3 * 3 * 50);
}

}  // namespace
}  // namespace pagoda
