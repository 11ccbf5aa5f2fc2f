#include "answer/xml_call_reader.h"

#include <string_view>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

using State = CallReader::State;
using Kind = AnswerPart::Kind;

constexpr std::string_view kFunctionTag = "<function=";
constexpr std::string_view kParameterTag = "<parameter=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::size_t kMaxTagBytes = 512;

bool may_become(std::string_view text, std::string_view tag) {
  return text.substr(0, tag.size()) == tag.substr(0, text.size());
}

nlohmann::json properties_of(std::span<const ToolDefinition> tools, std::string_view function) {
  const ToolDefinition* tool = find_tool(tools, function);
  if (tool == nullptr) return nlohmann::json::object();
  const auto schema = parse_json(tool->parameters_json);
  const auto properties = schema.is_object() ? schema.find("properties") : schema.end();
  if (!schema.is_object() || properties == schema.end() || !properties->is_object())
    return nlohmann::json::object();
  return *properties;
}

bool is_string_type(const nlohmann::json& schema) {
  if (!schema.is_object()) return false;
  const auto type = schema.find("type");
  return type != schema.end() && *type == "string";
}

}  // namespace

State XmlCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  if (place_ == Place::kBeforeTag && is_white_space(c)) return State::kMore;
  if (place_ == Place::kBeforeTag) text_.clear();
  text_ += c;
  if (place_ == Place::kInValue) {
    if (c != '>' || !text_.ends_with(kParameterEnd)) return State::kMore;
    text_.resize(text_.size() - kParameterEnd.size());
    tell_argument(parts);
    place_ = Place::kBeforeTag;
    return State::kMore;
  }
  place_ = Place::kInTag;
  const bool may_be_tag = name_.empty()
                              ? may_become(text_, kFunctionTag)
                              : may_become(text_, kParameterTag) || may_become(text_, kFunctionEnd);
  if (!may_be_tag || text_.size() > kMaxTagBytes) return State::kBroken;
  return c == '>' ? end_tag(parts) : State::kMore;
}

State XmlCallReader::end_tag(std::vector<AnswerPart>& parts) {
  if (text_ == kFunctionEnd) {
    append_part(parts, Kind::kArguments, has_arguments_ ? "}" : "{}");
    append_part(parts, Kind::kCallEnd, "");
    return State::kDone;
  }
  text_.pop_back();  // removes the '>'
  if (name_.empty()) return begin_function(text_.substr(kFunctionTag.size()), parts);
  parameter_ = text_.substr(kParameterTag.size());
  text_.clear();
  place_ = Place::kInValue;
  return parameter_.empty() ? State::kBroken : State::kMore;
}

State XmlCallReader::begin_function(std::string name, std::vector<AnswerPart>& parts) {
  if (find_tool(tools_, name) == nullptr) return State::kBroken;
  name_ = std::move(name);
  properties_ = properties_of(tools_, name_);
  append_part(parts, Kind::kCall, name_);
  place_ = Place::kBeforeTag;
  return State::kMore;
}

void XmlCallReader::tell_argument(std::vector<AnswerPart>& parts) {
  append_part(parts, Kind::kArguments,
              (has_arguments_ ? ", " : "{") + json_string(parameter_) + ": " + value_json());
  has_arguments_ = true;
}

std::string XmlCallReader::value_json() const {
  std::string_view text = text_;
  // The newlines next to the tags are not part of the value.
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto schema = properties_.find(parameter_);
  if (schema != properties_.end() && is_string_type(*schema)) return json_string(text);
  if (nlohmann::json::accept(text)) return std::string(text);
  return json_string(text);
}

}  // namespace pagoda
