#include "serving/answer_reader.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "answer/answer_grammar.h"

namespace pagoda {
namespace {

std::optional<int> special_token_id(const Tokenizer& tokenizer, std::string_view text) {
  const auto id = tokenizer.token_to_id(text);
  return id && tokenizer.is_special(*id) ? id : std::nullopt;
}

bool ends_with_mark(std::string_view text, std::string_view mark) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && text.substr(0, last + 1).ends_with(mark);
}

std::vector<ToolDefinition> tools_to_call(const ToolUse& use) {
  std::set<std::string_view> names(use.allowed.begin(), use.allowed.end());
  if (!use.function.empty()) names = {use.function};
  if (names.empty()) return use.tools;
  std::vector<ToolDefinition> tools;
  std::copy_if(use.tools.begin(), use.tools.end(), std::back_inserter(tools),
               [&](const ToolDefinition& tool) { return names.contains(tool.name); });
  return tools;
}

// Makes the grammar that enforces an answer's form. If calls are required, there is no text to
// which a format could apply. If JSON is asked for and calls are optional, the answer is one of the
// two, possibly after a thought. Any other grammar applies to the whole answer. If the model is
// free to choose, a grammar is needed only for strict tools, or if some tools must not be called.
Status hold_to_form(const ServedModel& model, const ToolUse& tools,
                    const AnswerParserOptions& parsing, std::optional<GrammarRequest>& grammar) {
  const bool must_call = tools.is_allowed() && tools.mode == ToolMode::kRequired;
  const bool is_json = grammar && grammar->spec.kind == GrammarKind::kJsonSchema;
  const bool has_strict = std::any_of(tools.tools.begin(), tools.tools.end(),
                                      [](const ToolDefinition& tool) { return tool.is_strict; });
  const bool is_free = !tools.is_allowed() || (!has_strict && tools.allowed.empty());
  if (!must_call && !is_json && (is_free || grammar)) return ok_status();
  if (must_call && grammar && !grammar->is_for_text) {
    return invalid_argument("'tool_choice' asks for calls alone, and '{}' for another answer",
                            grammar->param)
        .of_field("tool_choice");
  }
  AnswerGrammarOptions options = {
      .syntax = model.answer_format.tool_syntax,
      .may_hold_prose = !must_call && !is_json,
      .json_schema = {},
      .has_one_call =
          (must_call || is_json) && (!tools.has_parallel_calls || !tools.function.empty()),
      .thought = must_call || !is_json ? model.answer_format.thought : parsing.thought,
      .begins_in_thought = parsing.begins_in_thought,
      .special_token_id = [&](std::string_view text) {
        return special_token_id(*model.tokenizer, text);
      }};
  GrammarRequest held = {.spec = {.asked_by = "tools"}, .param = "tools"};
  if (!must_call && is_json) {
    held = *std::move(grammar);
    options.json_schema = std::move(held.spec.text);
  }
  const std::vector<ToolDefinition> callable =
      tools.is_allowed() ? tools_to_call(tools) : std::vector<ToolDefinition>();
  held.spec.kind = GrammarKind::kAnswer;
  held.spec.text = answer_grammar(callable, options);
  grammar = std::move(held);
  return ok_status();
}

}  // namespace

bool begins_in_thought(const ServedModel& model, std::string_view prompt) {
  const std::optional<ThoughtMarks>& thought = model.answer_format.thought;
  return thought && ends_with_mark(prompt, thought->begin);
}

Result<AnswerForm> resolve_answer_form(const ServedModel& model, std::string_view prompt,
                                       const ToolUse& tools, bool reads_thoughts,
                                       std::optional<GrammarRequest>& grammar) {
  const AnswerFormat& format = model.answer_format;
  const bool reads_calls = tools.is_allowed();
  reads_thoughts = reads_thoughts && format.thought;
  if (!reads_calls && !reads_thoughts) return AnswerForm{};
  AnswerParserOptions parsing = {
      .tool_syntax = format.tool_syntax,
      .reads_calls = reads_calls,
      .reads_one_call = !tools.has_parallel_calls,
      .has_only_calls = reads_calls && tools.mode == ToolMode::kRequired,
      .begins_in_thought = begins_in_thought(model, prompt),
      .tools = std::make_shared<const std::vector<ToolDefinition>>(tools.tools)};
  if (reads_thoughts) parsing.thought = format.thought;
  std::vector<std::string> marks;
  if (reads_calls) marks = call_marks(format.tool_syntax);
  if (reads_thoughts) marks.push_back(format.thought->begin);
  const bool is_hidden = std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) {
    return special_token_id(*model.tokenizer, mark).has_value();
  });
  PAGODA_RETURN_IF_ERROR(hold_to_form(model, tools, parsing, grammar));
  // If another grammar applies from the first token on, the answer cannot begin with the rest of a
  // thought.
  if (grammar && grammar->spec.kind != GrammarKind::kAnswer) parsing.begins_in_thought = false;
  return AnswerForm{.parsing = std::move(parsing), .shows_special_tokens = is_hidden};
}

AnswerReader::AnswerReader(const std::optional<AnswerParserOptions>& parsing) {
  if (parsing) parser_.emplace(*parsing);
}

std::vector<AnswerPart> AnswerReader::parts_of(const TextPiece& piece) {
  if (!parser_) {
    if (piece.text.empty()) return {};
    return {{AnswerPart::Kind::kContent, piece.text}};
  }
  std::vector<AnswerPart> parts = parser_->push(piece.text);
  if (piece.finish_reason != FinishReason::kNone) {
    for (AnswerPart& part : parser_->finish()) append_part(parts, part.kind, std::move(part.text));
  }
  return parts;
}

}  // namespace pagoda
