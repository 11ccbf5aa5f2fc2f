#include "cli/commands/chat_conversation.h"

#include <filesystem>
#include <system_error>

#include "core/text_file.h"

namespace pagoda {
namespace {

bool has_role(const OrderedJson& message, const char* role) {
  return message.at("role") == role;
}

}  // namespace

void ChatConversation::add_text(std::string text) {
  const char* const role = next_call() ? "tool" : "user";
  turns_.push_back({{"role", role}, {"content", std::move(text)}});
}

void ChatConversation::add_answer(OrderedJson message) {
  message.erase("reasoning_content");
  turns_.push_back(std::move(message));
}

std::optional<std::string> ChatConversation::next_call() const {
  std::size_t num_results = 0;
  while (num_results < turns_.size() && has_role(turns_[turns_.size() - 1 - num_results], "tool"))
    ++num_results;
  if (num_results == turns_.size()) return {};
  const OrderedJson& message = turns_[turns_.size() - 1 - num_results];
  if (!message.contains("tool_calls") || message["tool_calls"].size() <= num_results) return {};
  return message["tool_calls"][num_results].at("function").at("name").get<std::string>();
}

bool ChatConversation::take_back_answer() {
  if (turns_.empty()) return false;
  if (next_call()) take_back_texts();
  if (has_role(turns_.back(), "assistant")) turns_.erase(turns_.size() - 1);
  return true;
}

void ChatConversation::take_back_texts() {
  while (!turns_.empty() && !has_role(turns_.back(), "assistant")) turns_.erase(turns_.size() - 1);
}

OrderedJson ChatConversation::messages() const {
  OrderedJson messages = OrderedJson::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const OrderedJson& turn : turns_) messages.push_back(turn);
  return messages;
}

Status save_conversation(const ChatConversation& conversation, const std::string& model,
                         const OrderedJson& tools, const std::string& file) {
  std::error_code error;
  if (std::filesystem::exists(file, error))
    return invalid_argument("[chat] {}: expected a name that is free, got a file", file);
  OrderedJson body = {{"model", model}, {"messages", conversation.messages()}};
  if (!tools.is_null()) body["tools"] = tools;
  return write_text_file(file, json_text(body) + "\n");
}

}  // namespace pagoda
