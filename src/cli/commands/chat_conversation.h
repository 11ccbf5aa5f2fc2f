// ChatConversation: the messages of `pagoda chat`, and how its commands change them.
#pragma once

#include <string>

#include "core/json.h"
#include "core/status.h"

namespace pagoda {

// Thread-compatible.
class ChatConversation {
 public:
  // Sets the system message; "": there is none. It counts for all answers from now on.
  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }

  void add_question(std::string text);
  // Adds a message of the assistant, in OpenAI's shape. A thought in it is left out, as templates
  // expect.
  void add_answer(OrderedJson message);

  // Removes the answer to the latest question, if there is one. Returns false if nothing was asked.
  bool take_back_answer();
  // Removes the latest question. REQUIRES: it has no answer.
  void take_back_question();
  // Removes all messages except the system message.
  void clear() { turns_ = OrderedJson::array(); }
  bool empty() const { return turns_.empty(); }

  // Returns a list in OpenAI's shape.
  OrderedJson messages() const;

 private:
  std::string system_;
  OrderedJson turns_ = OrderedJson::array();
};

// Writes a conversation as the body of a request for its next answer. kInvalidArgument if `file` is
// there already; kUnavailable if it cannot be written.
Status save_conversation(const ChatConversation& conversation, const std::string& model,
                         const std::string& file);

}  // namespace pagoda
