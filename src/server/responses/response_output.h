// ResponseOutput: the items of a response, one after another, and the events that tell of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer/answer_part.h"
#include "core/json.h"
#include "server/base/request_json.h"

namespace pagoda {

// Thread-compatible.
class ResponseOutput {
 public:
  using Json = nlohmann::json;

  // Takes the next part of the answer. What a stream tells of it is appended to `events`.
  void add(const AnswerPart& part, std::vector<Json>& events);
  // Takes log-probabilities of tokens, as chats write them; the next message's text has them.
  void add_logprobs(Json content);
  // Ends the item that is open. `status`: completed or incomplete.
  void close(std::string_view status, std::vector<Json>& events);

  bool is_empty() const { return items_.empty() && item_.is_null(); }
  // Returns the items that have ended.
  const Json& items() const { return items_; }
  // Returns the text of all messages.
  const std::string& text() const { return text_; }
  // Returns the items as one message of the assistant, as chats have it: keys in the order of
  // OpenAI's, which templates print.
  RequestJson message() const;

 private:
  void open(AnswerPart::Kind kind, const std::string& name, std::vector<Json>& events);
  Json event(std::string_view type) const;
  Json event_of_part(std::string_view type) const;
  Json text_part(const std::string& text, Json logprobs) const;

  Json items_ = Json::array();
  Json item_;                                           // that is open; null: none is
  AnswerPart::Kind kind_ = AnswerPart::Kind::kContent;  // of it
  std::string item_text_;
  Json logprobs_ = Json::array();      // of the open item's text
  Json new_logprobs_ = Json::array();  // that no event has told
  std::string text_;
};

}  // namespace pagoda
