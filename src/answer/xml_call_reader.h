// Calls as Qwen3-Coder writes them, each argument between tags of its own:
//
//   <function=get_weather>
//   <parameter=city>
//   Paris
//   </parameter>
//   </function>
//
// Text between the tags has no quotes, so the function's schema decides what it is: text
// where it says string, JSON where the text is JSON, text otherwise. Each argument is told when its
// tag closes.
#pragma once

#include <span>
#include <string>

#include "answer/call_reader.h"
#include "core/json.h"

namespace pagoda {

class XmlCallReader : public CallReader {
 public:
  explicit XmlCallReader(std::span<const ToolDefinition> tools) : tools_(tools) {}

  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  enum class Place { kBeforeTag, kInTag, kInValue };

  State end_tag(std::vector<AnswerPart>& parts);
  State begin_function(std::string name, std::vector<AnswerPart>& parts);
  void tell_argument(std::vector<AnswerPart>& parts);
  std::string value_json() const;

  std::span<const ToolDefinition> tools_;
  Place place_ = Place::kBeforeTag;
  std::string text_;           // of the tag or the value
  std::string name_;           // of the function, once its tag has closed
  nlohmann::json properties_;  // the function's
  std::string parameter_;
  bool has_arguments_ = false;
};

}  // namespace pagoda
