#include "bench_serve/sharegpt_file.h"

#include <fstream>

#include "core/json.h"

namespace pagoda {

namespace {

using nlohmann::json;

std::string turn_text(const json& turn) {
  if (!turn.is_object()) return {};
  const auto value = turn.find("value");
  return value != turn.end() && value->is_string() ? value->get<std::string>() : std::string();
}

void take_conversation(const json& entry, std::vector<Conversation>& conversations) {
  const auto found = entry.find("conversations");
  if (found == entry.end() || !found->is_array() || found->size() < 2) return;
  Conversation conversation = {turn_text((*found)[0]), turn_text((*found)[1])};
  if (conversation.question.empty() || conversation.answer.empty()) return;
  conversations.push_back(std::move(conversation));
}

}  // namespace

Result<std::vector<Conversation>> read_sharegpt_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found("[sharegpt] {}: expected a file that can be read", path);
  std::vector<Conversation> conversations;
  // Each conversation is dropped once it is read, because the usual file has 600 MB.
  const auto on_event = [&](int depth, json::parse_event_t event, const json& value) {
    if (depth != 1 || event != json::parse_event_t::object_end) return true;
    take_conversation(value, conversations);
    return false;
  };
  const json rest = json::parse(file, on_event, /*allow_exceptions=*/false);
  if (rest.is_discarded() || !rest.is_array()) {
    return data_loss("[sharegpt] {}: expected a JSON list of conversations, got something else",
                     path);
  }
  return conversations;
}

Result<std::vector<std::string>> read_text_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found("[sonnet] {}: expected a file that can be read", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line + '\n');
  }
  return lines;
}

}  // namespace pagoda
