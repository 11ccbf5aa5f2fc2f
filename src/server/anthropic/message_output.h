// MessageOutput: the blocks of an answer of /v1/messages, and the events that tell of them.
#pragma once

#include <string>
#include <vector>

#include "answer/answer_part.h"
#include "core/json.h"

namespace pagoda {

// Thread-compatible.
class MessageOutput {
 public:
  using Json = nlohmann::json;

  // Takes the next part of the answer. What a stream tells of it is appended to `events`.
  void add(const AnswerPart& part, std::vector<Json>& events);
  // Ends the block that is open.
  void close(std::vector<Json>& events);

  // Returns the blocks that have ended.
  const Json& blocks() const { return blocks_; }

 private:
  void open(const AnswerPart& part, std::vector<Json>& events);

  Json blocks_ = Json::array();
  Json block_;                                          // that is open; null: none is
  AnswerPart::Kind kind_ = AnswerPart::Kind::kContent;  // of it
  std::string text_;
};

}  // namespace pagoda
