// For tests: reads answers whole and in pieces.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/answer_parser.h"
#include "core/json.h"

namespace pagoda {

inline constexpr ToolSyntax kAllSyntaxes[] = {ToolSyntax::kHermes,  ToolSyntax::kQwenXml,
                                              ToolSyntax::kLlama3,  ToolSyntax::kPythonic,
                                              ToolSyntax::kMistral, ToolSyntax::kMistralV11};

// The parts of an answer, as a client gets them.
struct Answer {
  std::string content, thought;
  std::vector<std::pair<std::string, std::string>> calls;
  bool is_broken = false;  // a call broke off
  bool operator==(const Answer&) const = default;
};

inline void PrintTo(const Answer& answer, std::ostream* out) {
  *out << nlohmann::json({{"content", answer.content},
                          {"thought", answer.thought},
                          {"calls", answer.calls},
                          {"is_broken", answer.is_broken}})
              .dump();
}

inline void add(const std::vector<AnswerPart>& parts, Answer& answer) {
  for (const AnswerPart& part : parts) {
    if (part.kind == AnswerPart::Kind::kContent) answer.content += part.text;
    if (part.kind == AnswerPart::Kind::kThought) answer.thought += part.text;
    if (part.kind == AnswerPart::Kind::kCall) answer.calls.emplace_back(part.text, "");
    if (part.kind == AnswerPart::Kind::kArguments) answer.calls.back().second += part.text;
    if (part.kind == AnswerPart::Kind::kCallEnd) {
      EXPECT_TRUE(parse_json(answer.calls.back().second).is_object()) << answer.calls.back().second;
    }
  }
}

inline AnswerParserOptions calls_in(ToolSyntax syntax) {
  auto tools = std::make_shared<std::vector<ToolDefinition>>();
  tools->push_back({.name = "get_weather", .parameters_json = R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "zip": {"type": "string"}}})"});
  for (const char* name : {"f", "g", "now", "a.b"}) tools->push_back({.name = name});
  return {.tool_syntax = syntax, .reads_calls = true, .tools = std::move(tools)};
}

inline Answer read_in_pieces(const AnswerParserOptions& options, std::string_view text,
                             std::vector<std::size_t> cuts) {
  AnswerParser parser(options);
  Answer answer;
  std::size_t begin = 0;
  cuts.push_back(text.size());
  for (const std::size_t cut : cuts) {
    add(parser.push(text.substr(begin, cut - begin)), answer);
    begin = cut;
  }
  add(parser.finish(), answer);
  answer.is_broken = parser.has_broken_call();
  EXPECT_EQ(parser.num_calls() > 0, !answer.calls.empty());
  return answer;
}

// Reads a text whole, split at each byte, and byte by byte; all three results must be equal.
inline Answer read(const AnswerParserOptions& options, std::string_view text) {
  const Answer whole = read_in_pieces(options, text, {});
  std::vector<std::size_t> all;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(read_in_pieces(options, text, {cut}), whole) << text << " cut at " << cut;
    all.push_back(cut);
  }
  EXPECT_EQ(read_in_pieces(options, text, all), whole) << text;
  return whole;
}

}  // namespace pagoda
