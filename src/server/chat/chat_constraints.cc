#include "server/chat/chat_constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

std::vector<ToolDefinition> tools_to_call(const ToolFields& fields) {
  std::set<std::string_view> names(fields.allowed.begin(), fields.allowed.end());
  if (!fields.function.empty()) names = {fields.function};
  if (names.empty()) return fields.tools;
  std::vector<ToolDefinition> tools;
  std::copy_if(fields.tools.begin(), fields.tools.end(), std::back_inserter(tools),
               [&](const ToolDefinition& tool) { return names.contains(tool.name); });
  return tools;
}

// Says what holds the answer to its form. Calls that must be made leave no text for a format to
// hold. JSON may be asked for beside tools that the model is free to call: then its answer is the
// one or the other, perhaps behind a thought. Other grammars hold the whole answer. Strict tools,
// and functions that may not be called, need a grammar where the model may choose.
std::optional<ApiError> hold_to_form(const ServedModel& model, const ToolFields& tools,
                                     ChatJob& job) {
  GrammarFields& grammar = job.generation.grammar;
  const bool must_call = tools.are_used() && tools.mode == ToolMode::kRequired;
  const bool is_json = grammar.grammar && grammar.grammar->spec.kind == GrammarKind::kJsonSchema;
  const bool has_strict = std::any_of(tools.tools.begin(), tools.tools.end(),
                                      [](const ToolDefinition& tool) { return tool.is_strict; });
  const bool is_free = !tools.are_used() || (!has_strict && tools.allowed.empty());
  if (!must_call && !is_json && (is_free || grammar.grammar)) return {};
  if (must_call && grammar.grammar && !grammar.grammar->is_for_text) {
    return bad_request(
        "tool_choice",
        fmt::format("'tool_choice' asks for calls alone, and '{}' for another answer",
                    grammar.grammar->param));
  }
  AnswerGrammarOptions options = {
      .syntax = model.answer_format.tool_syntax,
      .may_hold_prose = !must_call && !is_json,
      .json_schema = {},
      .has_one_call =
          (must_call || is_json) && (!tools.has_parallel_calls || !tools.function.empty()),
      .thought = must_call || !is_json ? model.answer_format.thought : job.parsing->thought,
      .begins_in_thought = job.parsing->begins_in_thought,
      .special_token_id = [&](std::string_view text) {
        return special_token_id(*model.tokenizer, text);
      }};
  GrammarRequest held = {.spec = {.asked_by = "tools"}, .param = "tools"};
  if (!must_call && is_json) {
    held = *std::move(grammar.grammar);
    options.json_schema = std::move(held.spec.text);
  }
  const std::vector<ToolDefinition> callable =
      tools.are_used() ? tools_to_call(tools) : std::vector<ToolDefinition>();
  held.spec.kind = GrammarKind::kAnswer;
  held.spec.text = answer_grammar(callable, options);
  grammar.grammar = std::move(held);
  return {};
}

}  // namespace

std::optional<ApiError> settle_answer_format(const ServedModel& model, const ChatRequest& request,
                                             std::string_view prompt, ChatJob& job) {
  const AnswerFormat& format = model.answer_format;
  const ToolFields& tools = request.tools;
  const bool reads_calls = tools.are_used();
  const bool reads_thoughts = format.thought && request.reasoning.is_separate;
  const bool begins_in_thought = format.thought && ends_with_mark(prompt, format.thought->begin);
  if (const int budget = request.reasoning.token_budget.value_or(-1);
      format.thought && budget >= 0) {
    job.generation.thought_budget =
        ThoughtBudgetOptions{budget, *format.thought, begins_in_thought};
  }
  if (!reads_calls && !reads_thoughts) return {};
  AnswerParserOptions parsing = {
      .tool_syntax = format.tool_syntax,
      .reads_calls = reads_calls,
      .reads_one_call = !tools.has_parallel_calls,
      .tools = std::make_shared<const std::vector<ToolDefinition>>(tools.tools)};
  if (reads_thoughts) parsing.thought = format.thought;
  parsing.begins_in_thought = begins_in_thought;
  std::vector<std::string> marks;
  if (reads_calls) marks = call_marks(format.tool_syntax);
  if (reads_thoughts) marks.push_back(format.thought->begin);
  const bool is_hidden = std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) {
    return special_token_id(*model.tokenizer, mark).has_value();
  });
  if (is_hidden) job.generation.skip_special_tokens = false;
  job.parsing = std::move(parsing);
  if (auto error = hold_to_form(model, tools, job)) return error;
  const auto& grammar = job.generation.grammar.grammar;
  // A thought has no place in an answer that another grammar holds from its first token on.
  if (grammar && grammar->spec.kind != GrammarKind::kAnswer) job.parsing->begins_in_thought = false;
  return {};
}

}  // namespace pagoda
