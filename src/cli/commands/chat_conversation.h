// ChatConversation: the messages of `pagoda chat`, and how its commands change them.
#pragma once

#include <optional>
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

  // Adds what the user says: the result of next_call() if there is one, else a question.
  void add_text(std::string text);
  // Adds a message of the assistant, in OpenAI's shape. A thought in it is left out, as templates
  // expect.
  void add_answer(OrderedJson message);
  // Returns the function of the latest answer's next call that has no result; nothing if all calls
  // have one. Then the conversation is ready for an answer.
  std::optional<std::string> next_call() const;

  // Removes the latest answer, and results of its calls behind it. Returns false if nothing was
  // said.
  bool take_back_answer();
  // Removes what the user has said since the latest answer.
  void take_back_texts();
  // Removes all messages except the system message.
  void clear() { turns_ = OrderedJson::array(); }
  bool empty() const { return turns_.empty(); }

  // Returns a list in OpenAI's shape.
  OrderedJson messages() const;

 private:
  std::string system_;
  OrderedJson turns_ = OrderedJson::array();
};

// Writes a conversation as the body of a request for its next answer. tools: a list as in OpenAI's
// API; null: none. kInvalidArgument if `file` is there already; kUnavailable if it cannot be written.
Status save_conversation(const ChatConversation& conversation, const std::string& model,
                         const OrderedJson& tools, const std::string& file);

}  // namespace pagoda
