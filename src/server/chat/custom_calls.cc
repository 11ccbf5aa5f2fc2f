#include "server/chat/custom_calls.h"

#include <utility>

#include "answer/white_space.h"
#include "core/json.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

constexpr std::string_view kHead = R"({"input":")";
static_assert(kHead.substr(2, kCustomInput.size()) == kCustomInput);

// Returns whether an escape is complete. The two halves of a character beyond U+FFFF are one.
bool is_complete(std::string_view escape) {
  if (escape.size() < 2) return false;
  if (escape[1] != 'u') return true;
  const bool is_high = escape.size() > 3 && (escape[2] == 'd' || escape[2] == 'D') &&
                       std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
  return escape.size() >= (is_high ? 12 : 6);
}

// Returns the character of an escape, which stays as it is if it has none.
std::string character_of(const std::string& escape) {
  const nlohmann::json read = parse_json('"' + escape + '"');
  return read.is_string() ? read.get<std::string>() : escape;
}

}  // namespace

std::string CustomInputReader::push(std::string_view arguments) {
  std::string text;
  for (const char c : arguments) {
    switch (place_) {
      case Place::kBeforeText:
        take_head(c, text);
        break;
      case Place::kText:
        take_text(c, text);
        break;
      case Place::kBehindText:
        break;
      case Place::kOtherForm:
        text += c;
        break;
    }
  }
  return text;
}

std::string CustomInputReader::finish() {
  return place_ == Place::kBeforeText ? std::exchange(head_, {}) : std::string();
}

void CustomInputReader::take_head(char c, std::string& text) {
  head_ += c;
  if (c == kHead[num_marks_]) {
    if (++num_marks_ == kHead.size()) place_ = Place::kText;
    return;
  }
  const bool is_in_name = num_marks_ > 1 && num_marks_ < kHead.size() - 2;
  if (!is_in_name && is_white_space(c)) return;
  place_ = Place::kOtherForm;
  text += std::exchange(head_, {});
}

void CustomInputReader::take_text(char c, std::string& text) {
  if (escape_.empty() && c != '\\') {
    if (c == '"')
      place_ = Place::kBehindText;
    else
      text += c;
    return;
  }
  escape_ += c;
  if (is_complete(escape_)) text += character_of(std::exchange(escape_, {}));
}

bool CustomCalls::has(std::string_view name) const {
  const ToolDefinition* tool = tools_ ? find_tool(*tools_, name) : nullptr;
  return tool != nullptr && tool->is_custom;
}

void CustomCalls::tell_inputs(std::vector<AnswerPart>& parts) {
  std::vector<AnswerPart> told;
  told.reserve(parts.size());
  for (AnswerPart& part : parts) {
    if (part.kind == Kind::kCall) {
      reader_.reset();
      if (has(part.text)) reader_.emplace();
    } else if (reader_ && part.kind == Kind::kArguments) {
      part.text = reader_->push(part.text);
      if (part.text.empty()) continue;
    } else if (reader_ && part.kind == Kind::kCallEnd) {
      if (std::string rest = reader_->finish(); !rest.empty())
        told.push_back({Kind::kArguments, std::move(rest)});
    }
    told.push_back(std::move(part));
  }
  parts = std::move(told);
}

}  // namespace pagoda
