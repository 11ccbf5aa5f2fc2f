#include "cli/commands/typed_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace pagoda {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks_at_ends(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Splits "/name argument".
TypedInput command_of(std::string_view line) {
  line.remove_prefix(1);
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  return {.kind = TypedInput::Kind::kCommand,
          .text = std::string(without_blanks_at_ends(line.substr(end))),
          .command = std::string(line.substr(0, end))};
}

// Joins the lines of a message. Its first and its last line have only the text beside the quotes,
// and count if there is any.
TypedInput message_of_lines(std::vector<std::string> lines) {
  if (lines.front().empty()) lines.erase(lines.begin());
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  TypedInput input;
  input.text = fmt::format("{}", fmt::join(lines, "\n"));
  if (input.text.find_first_not_of(" \t\r\n") != std::string::npos)
    input.kind = TypedInput::Kind::kMessage;
  return input;
}

}  // namespace

std::optional<TypedInput> read_typed_input(
    const std::function<std::optional<std::string>(bool goes_on)>& read_line) {
  std::optional<std::string> line = read_line(false);
  if (!line) return {};
  if (!line->starts_with(kQuotes)) {
    const std::string_view typed = without_blanks_at_ends(*line);
    if (typed.empty()) return TypedInput{};
    if (typed.starts_with('/')) return command_of(typed);
    return TypedInput{.kind = TypedInput::Kind::kMessage, .text = *std::move(line), .command = {}};
  }
  line->erase(0, kQuotes.size());
  std::vector<std::string> lines;
  while (true) {
    const bool is_last = without_blanks_at_ends(*line).ends_with(kQuotes);
    if (is_last) line->resize(line->rfind(kQuotes));
    lines.push_back(*std::move(line));
    if (is_last) break;
    line = read_line(true);
    if (!line) return TypedInput{.kind = TypedInput::Kind::kUnfinished, .text = {}, .command = {}};
  }
  return message_of_lines(std::move(lines));
}

}  // namespace pagoda
