#include "answer/python_call_reader.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

using State = CallReader::State;
using Kind = AnswerPart::Kind;
using Json = OrderedJson;

constexpr int kMaxDepth = 64;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// A recursive-descent parser of the list. Each function sets place_ after the text that it has
// read. It returns nothing if the text does not fit.
class ListParser {
 public:
  explicit ListParser(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::pair<std::string, Json>>> calls() {
    std::vector<std::pair<std::string, Json>> result;
    if (!skip('[')) return {};
    do {
      std::string name = word();
      if (name.empty() || !skip('(')) return {};
      auto arguments = named_values();
      if (!arguments) return {};
      result.emplace_back(std::move(name), *std::move(arguments));
    } while (skip(','));
    if (!skip(']') || !at_end()) return {};
    return result;
  }

 private:
  // Reads the arguments and the closing bracket.
  std::optional<Json> named_values() {
    Json result = Json::object();
    while (!skip(')')) {
      const std::string name = word();
      if (name.empty() || !skip('=')) return {};
      auto item = value(0);
      if (!item) return {};
      result[name] = *std::move(item);
      if (!skip(',') && !is_next(')')) return {};
    }
    return result;
  }

  std::optional<Json> value(int depth) {
    skip_space();
    if (place_ == text_.size() || depth > kMaxDepth) return {};
    const char c = text_[place_];
    if (c == '"' || c == '\'') return string();
    if (c == '{') return dict(depth);
    if (c == '[' || c == '(') return list(depth, c == '[' ? ']' : ')');
    return literal();
  }

  std::optional<Json> list(int depth, char end) {
    ++place_;
    Json result = Json::array();
    while (!skip(end)) {
      auto item = value(depth + 1);
      if (!item) return {};
      result.push_back(*std::move(item));
      if (!skip(',') && !is_next(end)) return {};
    }
    return result;
  }

  std::optional<Json> dict(int depth) {
    ++place_;
    Json result = Json::object();
    while (!skip('}')) {
      const auto key = value(depth + 1);
      if (!key || !key->is_string() || !skip(':')) return {};
      auto item = value(depth + 1);
      if (!item) return {};
      result[key->get<std::string>()] = *std::move(item);
      if (!skip(',') && !is_next('}')) return {};
    }
    return result;
  }

  std::optional<Json> literal() {
    const std::string text = word_with("+");
    if (text == "True" || text == "true") return Json(true);
    if (text == "False" || text == "false") return Json(false);
    if (text == "None" || text == "null") return Json(nullptr);
    Json number = parse_ordered_json(text);
    if (!number.is_number()) return {};
    return number;
  }

  std::optional<Json> string() {
    const std::string quotes(3, text_[place_]);
    const bool is_triple = text_.substr(place_).starts_with(quotes);
    const std::string_view end = std::string_view(quotes).substr(0, is_triple ? 3 : 1);
    place_ += end.size();
    std::string result;
    while (place_ < text_.size() && !text_.substr(place_).starts_with(end)) {
      if (text_[place_] == '\\') {
        if (!escape(result)) return {};
      } else {
        result += text_[place_++];
      }
    }
    if (place_ == text_.size()) return {};
    place_ += end.size();
    return Json(std::move(result));
  }

  // Reads one of Python's escapes. Only escapes of a single letter and \u are supported.
  bool escape(std::string& out) {
    constexpr std::string_view kLetters = "nrtbf\\'\"/";
    constexpr std::string_view kMeanings = "\n\r\t\b\f\\'\"/";
    if (place_ + 1 >= text_.size()) return false;
    const char c = text_[place_ + 1];
    if (const auto found = kLetters.find(c); found != std::string_view::npos) {
      out += kMeanings[found];
      place_ += 2;
      return true;
    }
    if (c != 'u') return false;
    // Two \u escapes may encode one character.
    std::size_t end = place_;
    while (text_.substr(end, 2) == "\\u" && end + 6 <= text_.size()) end += 6;
    const auto characters =
        parse_json("\"" + std::string(text_.substr(place_, end - place_)) + "\"");
    if (!characters.is_string()) return false;
    out += characters.get<std::string>();
    place_ = end;
    return true;
  }

  std::string word() { return word_with(""); }
  std::string word_with(std::string_view others) {
    skip_space();
    const std::size_t begin = place_;
    while (place_ < text_.size() &&
           (is_name_char(text_[place_]) || others.find(text_[place_]) != std::string_view::npos))
      ++place_;
    return std::string(text_.substr(begin, place_ - begin));
  }

  void skip_space() {
    while (place_ < text_.size() && is_white_space(text_[place_])) ++place_;
  }
  bool is_next(char c) {
    skip_space();
    return place_ < text_.size() && text_[place_] == c;
  }
  bool skip(char c) {
    if (!is_next(c)) return false;
    ++place_;
    return true;
  }
  bool at_end() {
    skip_space();
    return place_ == text_.size();
  }

  std::string_view text_;
  std::size_t place_ = 0;
};

}  // namespace

// Returns false if the text before the first '(' cannot be a name.
bool PythonCallReader::may_go_on() const {
  const char c = text_.back();
  return text_.size() == 1 ? c == '[' : is_name_char(c) || is_white_space(c);
}

// Begins a string. A quote directly behind an empty string makes it one of three quotes.
void PythonCallReader::begin_string(char quote) {
  is_triple_ = text_.size() == empty_end_ + 1 && text_[text_.size() - 2] == quote;
  quote_ = quote;
  num_end_quotes_ = 0;
  string_begin_ = text_.size();
}

void PythonCallReader::take_string(char c) {
  if (is_escaped_ || c != quote_) {
    is_escaped_ = !is_escaped_ && c == '\\';
    num_end_quotes_ = 0;
    return;
  }
  if (++num_end_quotes_ < (is_triple_ ? 3 : 1)) return;
  quote_ = 0;
  if (!is_triple_ && text_.size() == string_begin_ + 1) empty_end_ = text_.size();
}

State PythonCallReader::feed(char c, std::vector<AnswerPart>& parts) {
  text_ += c;
  if (quote_ != 0) {
    take_string(c);
    return State::kMore;
  }
  if (!has_call_) {
    has_call_ = c == '(' && text_.size() > 2;
    if (!has_call_ && !may_go_on()) return State::kBroken;
  }
  if (c == '"' || c == '\'') begin_string(c);
  if (c == '[' || c == '(' || c == '{') ++depth_;
  if (c == ']' || c == ')' || c == '}') --depth_;
  if (depth_ > 0) return State::kMore;
  const auto calls = ListParser(text_).calls();
  const auto is_known = [this](const auto& call) {
    return find_tool(tools_, call.first) != nullptr;
  };
  if (!calls || !std::all_of(calls->begin(), calls->end(), is_known)) return State::kBroken;
  for (const auto& [name, arguments] : *calls) {
    append_part(parts, Kind::kCall, name);
    append_part(parts, Kind::kArguments, json_text(arguments));
    append_part(parts, Kind::kCallEnd, "");
  }
  return State::kDone;
}

}  // namespace pagoda
