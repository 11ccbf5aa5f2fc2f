// MessageOutput: the content blocks of an answer of /v1/messages, and the stream's events for them.
#pragma once

#include <string>
#include <vector>

#include "answer/answer_part.h"
#include "core/json.h"

namespace pagoda {

// Thread-compatible.
class MessageOutput {
 public:
  // A call's arguments keep the order in which the model wrote them.
  using Json = OrderedJson;

  // Adds the next part of the answer, and appends the part's stream events to `events`. REQUIRES:
  // all calls are whole.
  void add(const AnswerPart& part, std::vector<Json>& events);
  // Ends the open block, if there is one, and appends its last event.
  void close(std::vector<Json>& events);

  // Returns the blocks that have ended.
  const Json& blocks() const { return blocks_; }

 private:
  void open(const AnswerPart& part, std::vector<Json>& events);

  Json blocks_ = Json::array();
  Json block_;                                          // the open block; null: none
  AnswerPart::Kind kind_ = AnswerPart::Kind::kContent;  // of the open block
  std::string text_;
};

}  // namespace pagoda
