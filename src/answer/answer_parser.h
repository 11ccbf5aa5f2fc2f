// AnswerParser: takes an answer apart, as it comes, into thoughts, prose and tool calls.
//
// The parts are a function of the text alone. However the text is cut into pieces, the parts of
// each kind come in the same order and hold the same text. So a streamed answer says what the whole
// one says. Text that turns out to be no call is prose. White space next to calls and thoughts is
// lost. Of a call that the answer's end cuts off, what does not belong to its arguments is lost.
//
// The crates that other servers use (tool-parser 1.10, dynamo-parsers 11.0) were tried first; both
// lose calls, and tool-parser's streams say something else than its whole answers
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
  bool reads_one_call = false;          // calls behind the first one are dropped
  std::optional<ThoughtMarks> thought;  // absent: thoughts are prose
  bool begins_in_thought = false;       // the prompt ends with the mark that begins one
  std::shared_ptr<const std::vector<ToolDefinition>> tools;  // may be null
};

// Finds marks in text that comes byte by byte. No mark may begin inside of another one.
class MarkFinder {
 public:
  MarkFinder() = default;
  explicit MarkFinder(std::vector<std::string> marks) : marks_(std::move(marks)) {}

  // Returns the mark that `c` completes, or null. Text that is no part of a mark goes to `passed`.
  const std::string* feed(char c, std::string& passed);
  // Returns what may have become a mark.
  std::string release() { return std::exchange(held_, {}); }

 private:
  std::vector<std::string> marks_;
  std::string held_;
};

// Thread-compatible.
class AnswerParser {
 public:
  explicit AnswerParser(AnswerParserOptions options);

  // Takes the next piece of the answer. Where it consists of whole characters, so does each part.
  std::vector<AnswerPart> push(std::string_view text);
  // Ends the answer. Nothing may be pushed behind it.
  std::vector<AnswerPart> finish();

  int num_calls() const { return num_calls_; }

 private:
  enum class Place : std::uint8_t {
    kBeginning,  // of the answer: a thought may begin
    kThought,
    kProse,
    kBeforeCall,  // behind a mark
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
  void give_up_call();
  void replay(std::string_view text);
  void tell(const std::vector<AnswerPart>& parts);
  void tell_text(AnswerPart::Kind kind, std::string_view text);

  AnswerParserOptions options_;
  Place place_ = Place::kBeginning;
  MarkFinder thought_end_;
  MarkFinder call_beginning_;
  std::unique_ptr<CallReader> reader_;
  // Text that has been read and not told: of the beginning, of a call, of what stands behind it.
  std::string held_;
  bool may_be_bare_call_ = true;  // nothing but white space has come
  bool has_told_call_ = false;    // of the place where calls are being read
  std::string white_space_;       // of prose or of a thought; told once something comes behind it
  bool skips_white_space_ = false;
  int num_calls_ = 0;
  std::vector<AnswerPart> parts_;
};

}  // namespace pagoda
