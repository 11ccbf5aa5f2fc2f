// Reads calls as Qwen3-Coder writes them, with tags around each argument:
//
//   <function=get_weather>
//   <parameter=city>
//   Paris
//   </parameter>
//   </function>
//
// Text between the tags has no quotes. The function's schema decides what it is: a string wherever
// the schema allows one, else JSON. A string is returned while it is read, other values when their
// tag closes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "answer/call_reader.h"
#include "answer/schema_types.h"
#include "core/json.h"

namespace pagoda {

class XmlCallReader : public CallReader {
 public:
  explicit XmlCallReader(std::span<const ToolDefinition> tools) : tools_(tools) {}

  State feed(char c, std::vector<AnswerPart>& parts) override;
  void finish(std::vector<AnswerPart>& parts) override;

 private:
  enum class Place : std::uint8_t { kBeforeTag, kInTag, kInValue };
  enum class Ending : std::uint8_t { kNone, kMayFollow, kEnds };

  State end_tag(std::vector<AnswerPart>& parts);
  State begin_function(std::string name);
  State begin_value(std::vector<AnswerPart>& parts);
  State end_function(std::vector<AnswerPart>& parts);
  State take_value(char c, std::vector<AnswerPart>& parts);
  Ending match_ending();
  Ending match_behind(std::string_view text, std::span<const std::string_view> tags);
  Ending match_next_parameter(std::string_view text);
  void take_value_byte(char c, std::vector<AnswerPart>& parts);
  void begin_string(std::vector<AnswerPart>& parts);
  void end_value(std::vector<AnswerPart>& parts);
  void tell_key(std::vector<AnswerPart>& parts);
  std::string value_json() const;
  bool has_property(std::string_view name) const;

  std::span<const ToolDefinition> tools_;
  Place place_ = Place::kBeforeTag;
  std::string tag_;     // the tag being read
  std::string name_;    // the function's name, once its tag has closed
  OrderedJson schema_;  // of the function's parameters
  bool is_told_ = false;
  bool has_arguments_ = false;
  std::string parameter_;
  JsonTypes types_ = kAnyType;  // of the parameter's value
  std::string value_;           // the part of the value that is not returned yet
  std::string ending_;          // text behind the value's that may end it
  std::string next_tag_;        // the tag behind the value, or its beginning
  bool is_at_beginning_ = false;
  bool is_string_begun_ = false;
};

}  // namespace pagoda
