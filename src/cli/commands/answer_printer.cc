#include "cli/commands/answer_printer.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "answer/answer_content.h"
#include "cli/base/standard_output.h"
#include "core/json.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

// Returns whether to write styles to `out` (https://no-color.org).
bool shows_styles(std::FILE* out) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_refused = no_color != nullptr && *no_color != '\0';
  const bool is_able = terminal != nullptr && std::string_view(terminal) != "dumb";
  return isatty(fileno(out)) != 0 && is_able && !is_refused;
}

}  // namespace

OrderedJson message_of(const std::vector<AnswerPart>& parts) {
  AnswerContent joiner;
  std::string content, thought;
  OrderedJson calls = OrderedJson::array();
  for (const AnswerPart& part : parts) {
    content += joiner.added_by(part);
    switch (part.kind) {
      case Kind::kContent:
        break;
      case Kind::kThought:
        thought += part.text;
        break;
      case Kind::kCall:
        calls.push_back(
            {{"type", "function"}, {"function", {{"name", part.text}, {"arguments", ""}}}});
        break;
      case Kind::kArguments:
        calls.back()["function"]["arguments"].get_ref<std::string&>() += part.text;
        break;
      case Kind::kCallEnd:
        break;
    }
  }
  OrderedJson message = {{"role", "assistant"}, {"content", content}};
  if (!thought.empty()) message["reasoning_content"] = thought;
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

AnswerPrinter::AnswerPrinter(std::FILE* out, const std::optional<AnswerParserOptions>& parsing)
    : out_(out), has_styles_(shows_styles(out)) {
  if (parsing && parsing->thought) marks_ = *parsing->thought;
}

void AnswerPrinter::print(const std::vector<AnswerPart>& parts) {
  for (const AnswerPart& part : parts) print_part(part);
}

void AnswerPrinter::print_part(const AnswerPart& part) {
  if (part.kind == Kind::kArguments) {
    arguments_ += part.text;
    return;
  }
  end_call();
  if (part.kind == Kind::kCallEnd) return;
  if (part.kind == Kind::kThought) {
    print_thought(part.text);
    return;
  }
  end_thought();
  if (part.kind == Kind::kCall) {
    call_ = part.text;
  } else {
    write(part.text);
  }
}

void AnswerPrinter::end() {
  end_call();
  end_thought();
  if (!ends_with_call_) write("\n");
}

void AnswerPrinter::print_thought(const std::string& text) {
  if (!has_styles_) {
    if (!is_in_thought_) write(marks_.begin + "\n");
    write(text);
  } else {
    // Each piece sets and resets the style: however the program ends, the terminal is left as it
    // was.
    std::fputs(kDim, out_);
    write(text);
    std::fputs(kPlain, out_);
    std::fflush(out_);
  }
  is_in_thought_ = true;
}

void AnswerPrinter::end_thought() {
  if (!is_in_thought_) return;
  is_in_thought_ = false;
  write(has_styles_ ? "\n\n" : "\n" + marks_.end + "\n\n");
}

void AnswerPrinter::end_call() {
  if (!call_) return;
  OrderedJson arguments = parse_ordered_json(arguments_);
  if (arguments.is_discarded()) arguments = arguments_;  // the call was cut off
  const OrderedJson call = {{"name", *call_}, {"arguments", std::move(arguments)}};
  write((is_at_line_start_ ? "" : "\n") + json_text(call) + "\n");
  ends_with_call_ = true;
  call_.reset();
  arguments_.clear();
}

void AnswerPrinter::write(const std::string& text) {
  if (text.empty()) return;
  write_answer(out_, text);
  is_at_line_start_ = text.ends_with('\n');
  ends_with_call_ = false;
}

}  // namespace pagoda
