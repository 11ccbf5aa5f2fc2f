#include "answer/json_scanner.h"

#include <string_view>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

constexpr std::string_view kSeparators = "{}[]:,\"";

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20;
}

}  // namespace

void append_escaped(char c, std::string& text) {
  if (c != '"' && c != '\\' && !is_control(c)) {
    text += c;
    return;
  }
  const std::string quoted = json_string({&c, 1});
  text.append(quoted, 1, quoted.size() - 2);
}

bool JsonScanner::feed(char c, std::string& text) {
  if (in_string_) return feed_string(c, text);
  text += c;
  if (!is_white_space(c) && kSeparators.find(c) == std::string_view::npos) {
    part_ += c;
    return false;
  }
  end_word();
  switch (c) {
    case '"':
      in_string_ = true;
      part_ = c;
      return false;
    case '{':
    case '[':
      open(c);
      return false;
    case '}':
    case ']':
      return close(c);
    case ':':
      expect(expected_ == Expected::kColon, Expected::kValue);
      return false;
    case ',':
      expect(expected_ == Expected::kCommaOrEnd,
             open_.back() == '{' ? Expected::kKey : Expected::kValue);
      return false;
    default:
      return false;
  }
}

bool JsonScanner::feed_string(char c, std::string& text) {
  const std::size_t begin = text.size();
  if (is_control(c)) {
    append_escaped(c, text);
  } else {
    text += c;
  }
  part_.append(text, begin);
  if (is_escaped_) {
    is_escaped_ = false;
    return false;
  }
  is_escaped_ = c == '\\';
  if (c != '"') return false;
  in_string_ = false;
  const bool is_valid = is_json(part_);
  part_.clear();
  if (expected_ == Expected::kKey || expected_ == Expected::kKeyOrEnd) {
    expect(is_valid, Expected::kColon);
  } else {
    take_value(is_valid);
  }
  return open_.empty();
}

// Ends a number, true, false or null, if one is being read.
void JsonScanner::end_word() {
  if (part_.empty()) return;
  take_value(is_json(part_));
  part_.clear();
}

void JsonScanner::take_value(bool is_valid) {
  const bool is_place = expected_ == Expected::kValue || expected_ == Expected::kValueOrEnd;
  expect(is_valid && is_place, Expected::kCommaOrEnd);
}

void JsonScanner::open(char c) {
  take_value(/*is_valid=*/true);
  open_ += c;
  expected_ = c == '{' ? Expected::kKeyOrEnd : Expected::kValueOrEnd;
}

// Closes the innermost bracket, whichever it is; returns whether it was the outermost too.
bool JsonScanner::close(char c) {
  const bool is_object = c == '}';
  const bool is_end = expected_ == Expected::kCommaOrEnd ||
                      expected_ == (is_object ? Expected::kKeyOrEnd : Expected::kValueOrEnd);
  expect(is_end && open_.back() == (is_object ? '{' : '['), Expected::kCommaOrEnd);
  open_.pop_back();
  return open_.empty();
}

void JsonScanner::expect(bool is_as_expected, Expected next) {
  is_valid_ = is_valid_ && is_as_expected;
  expected_ = next;
}

}  // namespace pagoda
