#include "answer/json_call_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

using State = CallReader::State;
using Kind = AnswerPart::Kind;

// The keys of a call. An object with other keys is a call only if it has arguments.
constexpr std::array<std::string_view, 5> kKeys = {"name", "arguments", "parameters", "type", "id"};

constexpr std::string_view kArgumentsMark = "[ARGS]";
constexpr std::string_view kCallIdMark = "[CALL_ID]";
constexpr std::size_t kMaxNameBytes = 512;

// Returns a JSON string's text; "" for other values.
std::string string_of(const std::string& json) {
  const auto value = parse_json(json);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Returns arguments given as an object, or as a string that holds one, as in OpenAI's API. Returns
// "" for others.
std::string arguments_of(const std::string& json) {
  if (json == "null") return "{}";
  const std::string text = json.starts_with('{') ? json : string_of(json);
  return parse_json(text).is_object() ? text : std::string();
}

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

}  // namespace

bool JsonCallReader::is_in_string() const {
  return place_ == Place::kInKey || (place_ == Place::kInValue && scanner_.is_in_string());
}

// Reads a byte. Once a call has been returned, the closing tag ends the calls wherever it stands
// outside strings, even if brackets are still open.
State JsonCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  if (!has_told_call_ || is_in_string()) return take(c, parts);
  if (tag_.empty() && c != '<') return take(c, parts);
  tag_ += c;
  if (tag_ == kCallEndTag) return State::kDone;
  if (kCallEndTag.starts_with(tag_)) return State::kMore;
  tag_.pop_back();
  for (const char held : std::exchange(tag_, {})) {
    if (const State state = take(held, parts); state != State::kMore) return state;
  }
  return feed(c, parts);
}

State JsonCallReader::take(char c, std::vector<AnswerPart>& parts) {
  const bool is_inside =
      place_ == Place::kInKey || place_ == Place::kInValue || place_ == Place::kInWord;
  if (!is_inside && is_white_space(c)) return State::kMore;
  switch (place_) {
    case Place::kBeginning:
      return begin(c);
    case Place::kBeforeObject:
      return begin_object(c);
    case Place::kBeforeKey:
      return begin_key(c, parts);
    case Place::kInKey:
      return end_key(c);
    case Place::kBehindKey:
      place_ = Place::kBeforeValue;
      return c == ':' ? State::kMore : State::kBroken;
    case Place::kBeforeValue:
      return begin_value(c, parts);
    case Place::kInValue:
      return take_value(c, parts);
    case Place::kInWord:
      return take_word(c, parts);
    case Place::kBehindValue:
      return behind_value(c, parts);
    case Place::kBehindObject:
      return behind_object(c);
  }
  return State::kBroken;
}

State JsonCallReader::begin(char c) {
  if (c != '[') return begin_object(c);
  is_list_ = true;
  place_ = Place::kBeforeObject;
  return State::kMore;
}

State JsonCallReader::begin_object(char c) {
  if (c != '{') return State::kBroken;
  name_.clear();
  arguments_.clear();
  has_other_keys_ = false;
  is_told_ = false;
  place_ = Place::kBeforeKey;
  return State::kMore;
}

State JsonCallReader::begin_key(char c, std::vector<AnswerPart>& parts) {
  if (c == '}' && is_told_) return end_object(parts);
  if (c != '"') return State::kBroken;
  scanner_ = JsonScanner();
  text_.clear();
  scanner_.feed(c, text_);
  place_ = Place::kInKey;
  return State::kMore;
}

State JsonCallReader::end_key(char c) {
  if (!scanner_.feed(c, text_)) return State::kMore;
  key_ = string_of(text_);
  place_ = Place::kBehindKey;
  if (std::find(kKeys.begin(), kKeys.end(), key_) != kKeys.end()) return State::kMore;
  has_other_keys_ = true;
  return begins_with_any_key_ || !name_.empty() ? State::kMore : State::kBroken;
}

State JsonCallReader::begin_value(char c, std::vector<AnswerPart>& parts) {
  text_.clear();
  scanner_ = JsonScanner();
  const bool is_word = c != '{' && c != '[' && c != '"';
  place_ = is_word ? Place::kInWord : Place::kInValue;
  if (is_word) return take_word(c, parts);
  is_streaming_ = c == '{' && is_arguments() && !name_.empty() && !is_told_;
  if (is_streaming_) {
    append_part(parts, Kind::kCall, name_);
    is_told_ = has_told_call_ = true;
  }
  return take_value(c, parts);
}

State JsonCallReader::take_value(char c, std::vector<AnswerPart>& parts) {
  std::string taken;
  const bool has_ended = scanner_.feed(c, taken);
  if (is_streaming_) {
    append_part(parts, Kind::kArguments, std::move(taken));
  } else {
    text_ += taken;
  }
  return has_ended ? end_value(parts) : State::kMore;
}

State JsonCallReader::take_word(char c, std::vector<AnswerPart>& parts) {
  if (is_word_char(c)) {
    text_ += c;
    return State::kMore;
  }
  place_ = Place::kBehindValue;
  if (is_arguments() && take_arguments(text_) == State::kBroken) return State::kBroken;
  return is_white_space(c) ? State::kMore : behind_value(c, parts);
}

State JsonCallReader::end_value(std::vector<AnswerPart>& parts) {
  place_ = Place::kBehindValue;
  if (is_streaming_) {
    is_streaming_ = false;
    if (scanner_.is_valid()) append_part(parts, Kind::kCallEnd, "");
    return State::kMore;
  }
  if (key_ == "name") {
    if (name_.empty()) name_ = string_of(text_);
    return find_tool(tools_, name_) == nullptr ? State::kBroken : State::kMore;
  }
  return is_arguments() ? take_arguments(text_) : State::kMore;
}

// Takes arguments that are not returned while they are read. A call's first ones count.
State JsonCallReader::take_arguments(const std::string& arguments) {
  if (is_told_ || !arguments_.empty()) return State::kMore;
  arguments_ = arguments_of(arguments);
  return arguments_.empty() ? State::kBroken : State::kMore;
}

State JsonCallReader::behind_value(char c, std::vector<AnswerPart>& parts) {
  if (c == ',') {
    place_ = Place::kBeforeKey;
    return State::kMore;
  }
  if (c == ']' && is_list_ && is_told_) return State::kDone;
  return c == '}' ? end_object(parts) : State::kBroken;
}

State JsonCallReader::end_object(std::vector<AnswerPart>& parts) {
  if (name_.empty()) return State::kBroken;
  if (!is_told_) {
    if (arguments_.empty() && has_other_keys_) return State::kBroken;
    append_part(parts, Kind::kCall, name_);
    append_part(parts, Kind::kArguments, arguments_.empty() ? std::string("{}") : arguments_);
    append_part(parts, Kind::kCallEnd, "");
    has_told_call_ = true;
  }
  place_ = Place::kBehindObject;
  return is_list_ ? State::kMore : State::kDone;
}

State JsonCallReader::behind_object(char c) {
  if (c == ']') return State::kDone;
  if (c == '}') return State::kMore;  // one too many
  place_ = Place::kBeforeObject;
  return c == ',' ? State::kMore : State::kBroken;
}

State NamedCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  if (!has_name_) return end_name(c);
  if (!has_begun_) {
    if (is_white_space(c)) return State::kMore;
    if (c != '{') return State::kBroken;
    has_begun_ = true;
    append_part(parts, Kind::kCall, name_);
  }
  std::string taken;
  const bool has_ended = scanner_.feed(c, taken);
  append_part(parts, Kind::kArguments, std::move(taken));
  if (!has_ended) return State::kMore;
  if (scanner_.is_valid()) append_part(parts, Kind::kCallEnd, "");
  return State::kDone;
}

State NamedCallReader::end_name(char c) {
  name_ += c;
  if (name_.size() > kMaxNameBytes || c == '\n') return State::kBroken;
  if (!name_.ends_with(kArgumentsMark)) return State::kMore;
  name_.resize(name_.size() - kArgumentsMark.size());
  name_.resize(std::min(name_.find(kCallIdMark), name_.size()));
  has_name_ = true;
  return find_tool(tools_, name_) == nullptr ? State::kBroken : State::kMore;
}

}  // namespace pagoda
