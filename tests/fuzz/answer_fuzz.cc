// An answer of a model: the first byte chooses the syntax of calls and thoughts, the second how the
// rest is cut. The parser must give the same result for the whole text and for pieces.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/answer_parser.h"
#include "core/check.h"
#include "core/json.h"

namespace pagoda {
namespace {

// The texts of each kind, joined, and the calls one by one.
struct Answer {
  std::string content, thought;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Answer&) const = default;
};

Answer read_cut(const AnswerParserOptions& options, std::string_view text, std::size_t piece) {
  AnswerParser parser(options);
  std::vector<AnswerPart> parts;
  for (std::size_t i = 0; i < text.size(); i += piece) {
    for (AnswerPart& part : parser.push(text.substr(i, piece)))
      append_part(parts, part.kind, std::move(part.text));
  }
  for (AnswerPart& part : parser.finish()) append_part(parts, part.kind, std::move(part.text));
  Answer answer;
  for (AnswerPart& part : parts) {
    switch (part.kind) {
      case AnswerPart::Kind::kContent:
        answer.content += part.text;
        break;
      case AnswerPart::Kind::kThought:
        answer.thought += part.text;
        break;
      case AnswerPart::Kind::kCall:
        PAGODA_CHECK(!part.text.empty(), "a call has a name");
        answer.calls.emplace_back(std::move(part.text), "");
        break;
      case AnswerPart::Kind::kArguments:
        PAGODA_CHECK(!answer.calls.empty(), "arguments belong to a call");
        answer.calls.back().second += part.text;
        break;
      case AnswerPart::Kind::kCallEnd:
        PAGODA_CHECK(parse_json(answer.calls.back().second).is_object(),
                     "the arguments of a whole call are an object");
        break;
    }
  }
  return answer;
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  if (size < 2) return 0;
  AnswerParserOptions options = {.tool_syntax = static_cast<ToolSyntax>(data[0] % 6),
                                 .reads_calls = (data[0] & 0x80) == 0,
                                 .reads_one_call = (data[0] & 0x40) != 0,
                                 .holds_calls_back = (data[0] & 0x08) != 0,
                                 .begins_in_thought = (data[0] & 0x20) != 0};
  static const auto tools =
      std::make_shared<const std::vector<ToolDefinition>>(std::vector<ToolDefinition>{
          {.name = "f"}, {.name = "g", .parameters_json = R"({"properties": {
                                      "a": {"type": ["string", "null"]}, "b": {"type": "boolean"}}})"}});
  options.tools = tools;
  if ((data[0] & 0x10) == 0) options.thought = ThoughtMarks{"<think>", "</think>"};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Answer whole = read_cut(options, text, text.size() + 1);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1} + data[1]})
    PAGODA_CHECK(read_cut(options, text, piece) == whole, "what is told depends on the text alone");
  return 0;
}
