#include "answer/xml_call_reader.h"

#include <utility>

#include "answer/json_scanner.h"
#include "answer/white_space.h"

namespace pagoda {
namespace {

using State = CallReader::State;
using Kind = AnswerPart::Kind;

constexpr std::string_view kFunctionTag = "<function=";
constexpr std::string_view kParameterTag = "<parameter=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::size_t kMaxTagBytes = 512;
// The most white space between a closing tag and the next tag.
constexpr std::size_t kMaxSpace = 64;

// The tags that may follow a value's closing tag. Before other text that tag is part of the value.
constexpr std::string_view kBehindValue[] = {kParameterTag, kFunctionEnd, kCallEndTag};
// The tag that may follow the function's closing tag if the value has none.
constexpr std::string_view kBehindFunction[] = {kCallEndTag};

bool may_become(std::string_view text, std::string_view tag) {
  return text.substr(0, tag.size()) == tag.substr(0, text.size());
}

// Returns a member of an object; null if there is none.
const OrderedJson* member(const OrderedJson& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

// Returns JSON's word for Python's, if the schema allows its type.
std::string_view json_word(std::string_view text, JsonTypes types) {
  if (types == kAnyType) return text;
  if (text == "True" && (types & kBooleanType) != 0) return "true";
  if (text == "False" && (types & kBooleanType) != 0) return "false";
  if (text == "None" && (types & kNullType) != 0) return "null";
  return text;
}

}  // namespace

State XmlCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  if (place_ == Place::kInValue) return take_value(c, parts);
  if (place_ == Place::kBeforeTag && is_white_space(c)) return State::kMore;
  place_ = Place::kInTag;
  tag_ += c;
  const bool may_be_tag = name_.empty()
                              ? may_become(tag_, kFunctionTag)
                              : may_become(tag_, kParameterTag) || may_become(tag_, kFunctionEnd);
  if (!may_be_tag || tag_.size() > kMaxTagBytes) return State::kBroken;
  return c == '>' ? end_tag(parts) : State::kMore;
}

State XmlCallReader::end_tag(std::vector<AnswerPart>& parts) {
  std::string tag = std::exchange(tag_, {});
  place_ = Place::kBeforeTag;
  if (tag == kFunctionEnd) return end_function(parts);
  tag.pop_back();  // removes the '>'
  if (name_.empty()) return begin_function(tag.substr(kFunctionTag.size()));
  parameter_ = tag.substr(kParameterTag.size());
  return parameter_.empty() ? State::kBroken : begin_value(parts);
}

// Reads the function's name. It is returned with the next tag, because text about such tags has
// none.
State XmlCallReader::begin_function(std::string name) {
  const ToolDefinition* tool = find_tool(tools_, name);
  if (tool == nullptr) return State::kBroken;
  name_ = std::move(name);
  schema_ = parse_ordered_json(tool->parameters_json);
  return State::kMore;
}

State XmlCallReader::end_function(std::vector<AnswerPart>& parts) {
  if (!is_told_) append_part(parts, Kind::kCall, name_);
  append_part(parts, Kind::kArguments, has_arguments_ ? "}" : "{}");
  append_part(parts, Kind::kCallEnd, "");
  return State::kDone;
}

State XmlCallReader::begin_value(std::vector<AnswerPart>& parts) {
  if (!is_told_) append_part(parts, Kind::kCall, name_);
  is_told_ = true;
  place_ = Place::kInValue;
  is_at_beginning_ = true;
  is_string_begun_ = false;
  types_ = kAnyType;
  const OrderedJson* properties = member(schema_, "properties");
  const OrderedJson* property = properties != nullptr ? member(*properties, parameter_) : nullptr;
  if (property != nullptr) types_ = types_of(*property, schema_);
  return State::kMore;
}

State XmlCallReader::take_value(char c, std::vector<AnswerPart>& parts) {
  ending_ += c;
  while (!ending_.empty()) {
    const Ending ending = match_ending();
    if (ending == Ending::kMayFollow) return State::kMore;
    if (ending == Ending::kNone) {
      take_value_byte(ending_.front(), parts);
      ending_.erase(0, 1);
      continue;
    }
    ending_.clear();
    end_value(parts);
    if (!next_tag_.starts_with(kParameterTag)) return end_function(parts);
    tag_ = next_tag_;
    place_ = Place::kInTag;
    return tag_.back() == '>' ? end_tag(parts) : State::kMore;
  }
  return State::kMore;
}

// Returns whether ending_ ends the value. The newline before the closing tag is not part of the
// value. If the value has no closing tag, the next tag ends it at the beginning of a line.
XmlCallReader::Ending XmlCallReader::match_ending() {
  std::string_view text = ending_;
  const bool is_at_line_start = is_at_beginning_ || text.front() == '\n';
  if (text.front() == '\n') text.remove_prefix(1);
  if (may_become(text, kParameterEnd)) {
    if (text.size() < kParameterEnd.size()) return Ending::kMayFollow;
    return match_behind(text.substr(kParameterEnd.size()), kBehindValue);
  }
  if (!is_at_line_start) return Ending::kNone;
  if (may_become(text, kParameterTag)) return match_next_parameter(text);
  if (!may_become(text, kFunctionEnd)) return Ending::kNone;
  if (text.size() < kFunctionEnd.size()) return Ending::kMayFollow;
  return match_behind(text.substr(kFunctionEnd.size()), kBehindFunction);
}

// Returns whether one of the tags stands in the text behind a closing tag.
XmlCallReader::Ending XmlCallReader::match_behind(std::string_view text,
                                                  std::span<const std::string_view> tags) {
  std::size_t num_spaces = 0;
  while (num_spaces < text.size() && is_white_space(text[num_spaces])) ++num_spaces;
  if (num_spaces > kMaxSpace) return Ending::kNone;
  text.remove_prefix(num_spaces);
  for (const std::string_view tag : tags) {
    if (!tag.starts_with(text)) continue;
    if (tag.size() > text.size()) return Ending::kMayFollow;
    next_tag_ = tag;
    return Ending::kEnds;
  }
  return Ending::kNone;
}

XmlCallReader::Ending XmlCallReader::match_next_parameter(std::string_view text) {
  if (text.size() > kMaxTagBytes || text.find('\n') != std::string_view::npos) return Ending::kNone;
  if (!text.ends_with('>')) return Ending::kMayFollow;
  const std::string_view name =
      text.substr(kParameterTag.size(), text.size() - kParameterTag.size() - 1);
  if (name == parameter_ || !has_property(name)) return Ending::kNone;
  next_tag_ = text;
  return Ending::kEnds;
}

bool XmlCallReader::has_property(std::string_view name) const {
  const OrderedJson* properties = member(schema_, "properties");
  return properties != nullptr && member(*properties, name) != nullptr;
}

// Takes a byte that is part of the value, or the newline behind its tag, which is not.
void XmlCallReader::take_value_byte(char c, std::vector<AnswerPart>& parts) {
  if (std::exchange(is_at_beginning_, false) && c == '\n') return;
  if (is_string_begun_) {
    std::string text;
    append_escaped(c, text);
    append_part(parts, Kind::kArguments, std::move(text));
    return;
  }
  value_ += c;
  const bool is_string = types_ != kAnyType && (types_ & kStringType) != 0;
  const bool may_be_null =
      (types_ & kNullType) != 0 && (may_become(value_, "null") || may_become(value_, "None"));
  if (is_string && !(may_be_null && value_.size() <= 4)) begin_string(parts);
}

// Begins a string with the bytes of value_.
void XmlCallReader::begin_string(std::vector<AnswerPart>& parts) {
  is_string_begun_ = true;
  tell_key(parts);
  std::string text = "\"";
  for (const char c : std::exchange(value_, {})) append_escaped(c, text);
  append_part(parts, Kind::kArguments, std::move(text));
}

void XmlCallReader::end_value(std::vector<AnswerPart>& parts) {
  if (!is_string_begun_) tell_key(parts);
  append_part(parts, Kind::kArguments, is_string_begun_ ? std::string("\"") : value_json());
  value_.clear();
}

void XmlCallReader::tell_key(std::vector<AnswerPart>& parts) {
  append_part(parts, Kind::kArguments,
              (has_arguments_ ? ", " : "{") + json_string(parameter_) + ": ");
  has_arguments_ = true;
}

// Returns the value of a parameter that is not known to be a string.
std::string XmlCallReader::value_json() const {
  const std::string_view text = json_word(value_, types_);
  return is_json(text) ? std::string(text) : json_string(text);
}

// Ends the answer in a value or behind it. A value without its end is returned as far as it came.
void XmlCallReader::finish(std::vector<AnswerPart>& parts) {
  if (place_ != Place::kInValue) return;
  std::string_view text = ending_;
  if (text.starts_with('\n')) text.remove_prefix(1);
  const bool ends_function = text.starts_with(kFunctionEnd);
  if (ends_function || text.starts_with(kParameterEnd)) {
    end_value(parts);
    if (ends_function) end_function(parts);
  } else if (!value_.empty()) {
    if (types_ == kAnyType || (types_ & kStringType) != 0) return begin_string(parts);
    tell_key(parts);
    append_part(parts, Kind::kArguments, value_);
  }
}

}  // namespace pagoda
