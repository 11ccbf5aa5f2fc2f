#include "answer/json_call_reader.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

using State = CallReader::State;
using Kind = AnswerPart::Kind;

// The characters allowed outside strings and brackets: separators, white space, numbers, and
// letters of true, false and null.
constexpr std::string_view kBetweenStrings = ",: \t\r\n0123456789+-.eEtrufalsn";

// An object with other keys is not a call.
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
  if (json.starts_with('{')) return json;
  const std::string inner = string_of(json);
  return parse_json(inner).is_object() ? inner : std::string();
}

}  // namespace

State JsonEndFinder::feed(char c) {
  if (in_string_) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      return open_.empty() ? State::kDone : State::kMore;
    }
    return State::kMore;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      return State::kMore;
    case '{':
    case '[':
      open_ += c;
      return State::kMore;
    case '}':
    case ']':
      if (open_.empty() || open_.back() != (c == '}' ? '{' : '[')) return State::kBroken;
      open_.pop_back();
      return open_.empty() ? State::kDone : State::kMore;
    default:
      return kBetweenStrings.find(c) == std::string_view::npos ? State::kBroken : State::kMore;
  }
}

State JsonCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  const bool is_inside =
      place_ == Place::kInKey || place_ == Place::kInValue || place_ == Place::kInWord;
  if (!is_inside && is_white_space(c)) return State::kMore;
  switch (place_) {
    case Place::kBeginning:
      return begin(c);
    case Place::kBeforeObject:
      return begin_object(c);
    case Place::kBeforeKey:
      return begin_key(c);
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
  is_told_ = false;
  place_ = Place::kBeforeKey;
  return State::kMore;
}

State JsonCallReader::begin_key(char c) {
  if (c != '"') return State::kBroken;
  finder_ = JsonEndFinder();
  finder_.feed(c);
  text_ = c;
  place_ = Place::kInKey;
  return State::kMore;
}

State JsonCallReader::end_key(char c) {
  text_ += c;
  if (finder_.feed(c) != State::kDone) return State::kMore;
  key_ = string_of(text_);
  place_ = Place::kBehindKey;
  const bool is_known = std::find(kKeys.begin(), kKeys.end(), key_) != kKeys.end();
  return is_known ? State::kMore : State::kBroken;
}

State JsonCallReader::begin_value(char c, std::vector<AnswerPart>& parts) {
  text_.clear();
  finder_ = JsonEndFinder();
  const bool is_word = c != '{' && c != '[' && c != '"';
  place_ = is_word ? Place::kInWord : Place::kInValue;
  is_streaming_ = c == '{' && is_arguments() && !name_.empty() && !is_told_;
  if (is_word) return take_word(c, parts);
  if (is_streaming_) append_part(parts, Kind::kCall, name_);
  is_told_ |= is_streaming_;
  return take_value(c, parts);
}

State JsonCallReader::take_value(char c, std::vector<AnswerPart>& parts) {
  const State state = finder_.feed(c);
  if (state == State::kBroken) return state;
  if (is_streaming_) {
    append_part(parts, Kind::kArguments, std::string(1, c));
  } else {
    text_ += c;
  }
  return state == State::kDone ? end_value() : State::kMore;
}

State JsonCallReader::take_word(char c, std::vector<AnswerPart>& parts) {
  if (c == ',' || c == '}') {
    place_ = Place::kBehindValue;
    return behind_value(c, parts);
  }
  return is_white_space(c) || kBetweenStrings.find(c) != std::string_view::npos ? State::kMore
                                                                                : State::kBroken;
}

State JsonCallReader::end_value() {
  place_ = Place::kBehindValue;
  if (key_ == "name") {
    if (name_.empty()) name_ = string_of(text_);
    return name_.empty() ? State::kBroken : State::kMore;
  }
  if (is_arguments() && !is_told_) {
    arguments_ = arguments_of(text_);
    return arguments_.empty() ? State::kBroken : State::kMore;
  }
  return State::kMore;
}

State JsonCallReader::behind_value(char c, std::vector<AnswerPart>& parts) {
  if (c == ',') {
    place_ = Place::kBeforeKey;
    return State::kMore;
  }
  return c == '}' ? end_object(parts) : State::kBroken;
}

State JsonCallReader::end_object(std::vector<AnswerPart>& parts) {
  if (name_.empty()) return State::kBroken;
  if (!is_told_) {
    append_part(parts, Kind::kCall, name_);
    append_part(parts, Kind::kArguments, arguments_.empty() ? std::string("{}") : arguments_);
  }
  place_ = Place::kBehindObject;
  return is_list_ ? State::kMore : State::kDone;
}

State JsonCallReader::behind_object(char c) {
  if (c == ']') return State::kDone;
  place_ = Place::kBeforeObject;
  return c == ',' ? State::kMore : State::kBroken;
}

State NamedCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  if (!has_name_) {
    name_ += c;
    if (name_.size() > kMaxNameBytes || c == '\n') return State::kBroken;
    if (!name_.ends_with(kArgumentsMark)) return State::kMore;
    name_.resize(name_.size() - kArgumentsMark.size());
    name_.resize(std::min(name_.find(kCallIdMark), name_.size()));
    has_name_ = true;
    return name_.empty() ? State::kBroken : State::kMore;
  }
  if (!has_begun_) {
    if (is_white_space(c)) return State::kMore;
    if (c != '{') return State::kBroken;
    has_begun_ = true;
    append_part(parts, Kind::kCall, name_);
  }
  const State state = finder_.feed(c);
  if (state != State::kBroken) append_part(parts, Kind::kArguments, std::string(1, c));
  return state;
}

}  // namespace pagoda
