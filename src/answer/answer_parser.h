// AnswerParser: splits an answer into thoughts, prose and tool calls while it is generated.
//
// The result depends on the text alone. However the text is split into pieces, the parts have the
// same order, kinds and joined text. So a streamed answer equals the whole one. Text that turns out
// not to be a call is prose. White space next to calls and thoughts is dropped. A call that breaks
// off keeps the arguments that have come and has no kCallEnd, or is prose, as the options say.
//
// The crates that other servers use (tool-parser 1.10, dynamo-parsers 11.0) are not used, because
// both lose calls. In addition, tool-parser's streams differ from its whole answers
// (docs/ARCHITECTURE.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer/answer_format.h"
#include "answer/answer_part.h"
#include "answer/call_reader.h"
#include "answer/tool_definition.h"

namespace pagoda {

struct AnswerParserOptions {
  ToolSyntax tool_syntax = ToolSyntax::kHermes;
  bool reads_calls = false;
  bool reads_one_call = false;          // further calls are dropped
  bool holds_calls_back = false;        // calls are returned once whole; others are prose
  bool has_only_calls = false;          // no prose: a call cut off before its name is dropped
  std::optional<ThoughtMarks> thought;  // absent: thoughts are prose
  bool begins_in_thought = false;       // the prompt ends with the mark that begins a thought
  // The functions whose calls are read: calls of other names are prose. Null: there are none.
  std::shared_ptr<const std::vector<ToolDefinition>> tools;
};

// Finds marks in text that arrives byte by byte. REQUIRES: no mark begins inside another.
class MarkFinder {
 public:
  MarkFinder() = default;
  explicit MarkFinder(std::vector<std::string> marks) : marks_(std::move(marks)) {}

  // Returns the mark that `c` completes, or null. Text that is not part of a mark is appended to
  // `passed`.
  const std::string* feed(char c, std::string& passed);
  // Returns the held text that might have become a mark.
  std::string release() { return std::exchange(held_, {}); }

 private:
  std::vector<std::string> marks_;
  std::string held_;
};

// Thread-compatible.
class AnswerParser {
 public:
  explicit AnswerParser(AnswerParserOptions options);

  // Reads the next piece of the answer. If the piece consists of whole characters, so does each
  // part.
  std::vector<AnswerPart> push(std::string_view text);
  // Ends the answer. No push may follow.
  std::vector<AnswerPart> finish();

  // Returns how many calls have been returned.
  int num_calls() const { return num_calls_; }
  // Returns whether one of them broke off. REQUIRES: finish() has been called.
  bool has_broken_call() const { return num_whole_calls_ < num_calls_; }

 private:
  enum class Place : std::uint8_t {
    kBeginning,  // start of the answer, where a thought may begin
    kThought,
    kProse,
    kBeforeCall,  // after a mark
    kCall,
    kBehindCall,
  };

  void take(char c);
  bool holds_more_white_space(char c);
  void take_beginning(char c);
  void take_thought(char c);
  void take_prose(char c);
  void begin_call(char c);
  void take_call(char c);
  void take_behind_call(char c);
  void take_parts(const std::vector<AnswerPart>& parts);
  void give_up_call();
  void end_call_of_finished_answer();
  void replay(std::string_view text);
  void tell(const std::vector<AnswerPart>& parts);
  void tell_text(AnswerPart::Kind kind, std::string_view text);

  AnswerParserOptions options_;
  Place place_ = Place::kBeginning;
  MarkFinder thought_end_;
  MarkFinder call_beginning_;
  std::unique_ptr<CallReader> reader_;
  // Text that has been read but not returned, while it is not clear what it is.
  std::string held_;
  bool may_be_bare_call_ = true;  // the answer has only white space so far
  std::vector<AnswerPart> call_;  // the open call's parts, if calls are held back
  bool has_told_call_ = false;    // a call of the current reader has been returned
  bool drops_calls_ = false;      // the one call that is read has been returned
  std::string white_space_;       // held back until more text of the same kind follows
  bool skips_white_space_ = false;
  int num_calls_ = 0;
  int num_whole_calls_ = 0;
  std::vector<AnswerPart> parts_;
};

}  // namespace pagoda
