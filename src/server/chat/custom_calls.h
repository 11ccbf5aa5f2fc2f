// CustomCalls: gives the calls of custom tools to the client as it knows them: by the text of their
// only argument, instead of by arguments as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/answer_part.h"
#include "answer/tool_definition.h"

namespace pagoda {

// Reads {"input": "..."} as it comes, and tells the text. Arguments of another form are told as they
// are. Thread-compatible.
class CustomInputReader {
 public:
  // Returns the text that more of the arguments brings.
  std::string push(std::string_view arguments);
  // Ends whole arguments. Returns them if they ended before their text began.
  std::string finish();

 private:
  enum class Place : std::uint8_t { kBeforeText, kText, kBehindText, kOtherForm };

  void take_head(char c, std::string& text);
  void take_text(char c, std::string& text);

  Place place_ = Place::kBeforeText;
  std::string head_;           // the arguments before their text
  std::size_t num_marks_ = 0;  // the number of the head's characters without white space
  std::string escape_;         // an escape that is not complete
};

// Thread-compatible.
class CustomCalls {
 public:
  // Reads the calls of `tools`; null: no call is a custom tool's.
  explicit CustomCalls(std::shared_ptr<const std::vector<ToolDefinition>> tools)
      : tools_(std::move(tools)) {}

  // Returns whether the tool with a name is custom.
  bool has(std::string_view name) const;
  // Replaces the arguments of custom tools in the next parts of an answer.
  void tell_inputs(std::vector<AnswerPart>& parts);

 private:
  std::shared_ptr<const std::vector<ToolDefinition>> tools_;
  std::optional<CustomInputReader> reader_;  // of the latest call, if it is a custom tool's
};

}  // namespace pagoda
