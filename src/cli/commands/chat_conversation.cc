#include "cli/commands/chat_conversation.h"

#include <filesystem>
#include <system_error>

#include "core/check.h"
#include "core/text_file.h"

namespace pagoda {
namespace {

bool is_answer(const OrderedJson& message) {
  return message.at("role") == "assistant";
}

}  // namespace

void ChatConversation::add_question(std::string text) {
  turns_.push_back({{"role", "user"}, {"content", std::move(text)}});
}

void ChatConversation::add_answer(OrderedJson message) {
  message.erase("reasoning_content");
  turns_.push_back(std::move(message));
}

bool ChatConversation::take_back_answer() {
  if (turns_.empty()) return false;
  if (is_answer(turns_.back())) turns_.erase(turns_.size() - 1);
  return true;
}

void ChatConversation::take_back_question() {
  PAGODA_CHECK(!turns_.empty() && !is_answer(turns_.back()), "expected a question at the end");
  turns_.erase(turns_.size() - 1);
}

OrderedJson ChatConversation::messages() const {
  OrderedJson messages = OrderedJson::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const OrderedJson& turn : turns_) messages.push_back(turn);
  return messages;
}

Status save_conversation(const ChatConversation& conversation, const std::string& model,
                         const std::string& file) {
  std::error_code error;
  if (std::filesystem::exists(file, error))
    return invalid_argument("[chat] {}: expected a name that is free, got a file", file);
  const OrderedJson body = {{"model", model}, {"messages", conversation.messages()}};
  return write_text_file(file, json_text(body) + "\n");
}

}  // namespace pagoda
