// Reads calls as Qwen3-Coder writes them, with tags around each argument:
//
//   <function=get_weather>
//   <parameter=city>
//   Paris
//   </parameter>
//   </function>
//
// Text between the tags has no quotes. It is a string if the function's schema says so or if it is
// not valid JSON. Otherwise it is JSON. Each argument is returned when its tag closes.
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
  std::string text_;           // the tag or value being read
  std::string name_;           // the function's name, once its tag has closed
  nlohmann::json properties_;  // the properties of the function's parameters
  std::string parameter_;
  bool has_arguments_ = false;
};

}  // namespace pagoda
