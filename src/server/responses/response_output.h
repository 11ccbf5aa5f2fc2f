// ResponseOutput: the items of a response, one after another, and the stream's events for them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/answer_content.h"
#include "answer/answer_part.h"
#include "core/json.h"
#include "server/base/request_json.h"
#include "server/chat/custom_calls.h"

namespace pagoda {

// Thread-compatible.
class ResponseOutput {
 public:
  using Json = nlohmann::json;

  // Begins an answer without items. `custom_calls` says which calls are items of custom tools, and must outlive the result.
  ResponseOutput(std::string response_id, const CustomCalls& custom_calls)
      : response_id_(std::move(response_id)), custom_calls_(custom_calls) {}

  // Adds the next part of the answer, and appends the part's stream events to `events`.
  void add(const AnswerPart& part, std::vector<Json>& events);
  // Adds log-probabilities of tokens, in the form of chats, to the text of the next message.
  void add_logprobs(Json content);
  // Ends the open item, if there is one. `status`: completed or incomplete. A call that broke off
  // is incomplete.
  void close(std::string_view status, std::vector<Json>& events);

  bool is_empty() const { return items_.empty() && item_.is_null(); }
  // Returns the items that have ended.
  const Json& items() const { return items_; }
  // Returns the items as one chat message of the assistant. Its keys are in OpenAI's order, since
  // templates may print them.
  RequestJson message() const;

 private:
  void end_item(std::string_view status, std::vector<Json>& events);
  void open(AnswerPart::Kind kind, const std::string& name, std::vector<Json>& events);
  void close_part(Json part, std::vector<Json>& events);
  Json event(std::string_view type) const;
  Json event_of_part(std::string_view type) const;
  Json text_part(const std::string& text, Json logprobs) const;

  std::string response_id_;
  const CustomCalls& custom_calls_;
  Json items_ = Json::array();
  Json item_;                                           // the open item; null: none
  AnswerPart::Kind kind_ = AnswerPart::Kind::kContent;  // of the open item
  bool is_custom_ = false;                              // the open call is one of a custom tool
  std::string item_text_;
  Json logprobs_ = Json::array();      // of the open item's text
  Json new_logprobs_ = Json::array();  // those that no event has reported
  AnswerContent joiner_;
  std::string text_;  // of all messages
};

}  // namespace pagoda
