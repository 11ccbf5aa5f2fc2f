#include "answer/answer_parser.h"

#include <utility>

#include "answer/white_space.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

constexpr char kBetweenBareCalls = ';';

// The most bytes behind a call in which marks are looked for a second time. A bound keeps the time
// for an answer linear.
constexpr std::size_t kMaxReplayedBytes = 256;
// The most closing brackets that a call may have too many.
constexpr int kMaxSpareBrackets = 8;

std::string_view without_white_space(std::string_view text) {
  while (!text.empty() && is_white_space(text.front())) text.remove_prefix(1);
  return text;
}

// Returns the text without white space and a few closing brackets at its beginning.
std::string_view without_spare_brackets(std::string_view text) {
  text = without_white_space(text);
  for (int i = 0; i < kMaxSpareBrackets; ++i) {
    if (text.empty() || (text.front() != '}' && text.front() != ']')) break;
    text = without_white_space(text.substr(1));
  }
  return text;
}

}  // namespace

const std::string* MarkFinder::feed(char c, std::string& passed) {
  held_ += c;
  while (!held_.empty()) {
    for (const std::string& mark : marks_) {
      if (!mark.starts_with(held_)) continue;
      if (mark.size() > held_.size()) return nullptr;
      held_.clear();
      return &mark;
    }
    passed += held_.front();
    held_.erase(0, 1);
  }
  return nullptr;
}

AnswerParser::AnswerParser(AnswerParserOptions options) : options_(std::move(options)) {
  if (options_.thought) thought_end_ = MarkFinder({options_.thought->end});
  if (options_.reads_calls) call_beginning_ = MarkFinder(call_marks(options_.tool_syntax));
  if (!options_.thought) place_ = Place::kProse;
  if (options_.thought && options_.begins_in_thought) place_ = Place::kThought;
  skips_white_space_ = place_ == Place::kThought;
}

std::vector<AnswerPart> AnswerParser::push(std::string_view text) {
  for (const char c : text) take(c);
  return std::exchange(parts_, {});
}

std::vector<AnswerPart> AnswerParser::finish() {
  switch (place_) {
    case Place::kBeginning:
      if (!options_.has_only_calls) tell_text(Kind::kContent, held_);
      break;
    case Place::kThought:
      tell_text(Kind::kThought, thought_end_.release());
      white_space_.clear();
      break;
    case Place::kProse:
      if (!options_.has_only_calls) tell_text(Kind::kContent, call_beginning_.release());
      break;
    case Place::kBeforeCall:
    case Place::kCall:
      end_call_of_finished_answer();
      break;
    case Place::kBehindCall:
      if (!kCallEndTag.starts_with(without_spare_brackets(held_)) && !options_.has_only_calls)
        tell_text(Kind::kContent, held_);
      break;
  }
  if (num_calls_ == 0 && !white_space_.empty())
    append_part(parts_, Kind::kContent, std::exchange(white_space_, {}));
  return std::exchange(parts_, {});
}

void AnswerParser::take(char c) {
  switch (place_) {
    case Place::kBeginning:
      return take_beginning(c);
    case Place::kThought:
      return take_thought(c);
    case Place::kProse:
      return take_prose(c);
    case Place::kBeforeCall:
      return begin_call(c);
    case Place::kCall:
      return take_call(c);
    case Place::kBehindCall:
      return take_behind_call(c);
  }
}

// Holds white space back, unless other text is held; returns whether it did. White space alone
// never decides what an answer is.
bool AnswerParser::holds_more_white_space(char c) {
  if (!is_white_space(c) || (!held_.empty() && !is_white_space(held_.back()))) return false;
  held_ += c;
  return true;
}

void AnswerParser::take_beginning(char c) {
  if (holds_more_white_space(c)) return;
  held_ += c;
  const std::string_view text = without_white_space(held_);
  if (text.empty()) return;
  const std::string& mark = options_.thought->begin;
  if (mark == text) {
    held_.clear();
    place_ = Place::kThought;
    skips_white_space_ = true;
  } else if (!mark.starts_with(text)) {
    place_ = Place::kProse;
    replay(std::exchange(held_, std::string()));
  }
}

void AnswerParser::take_thought(char c) {
  std::string passed;
  const bool has_ended = thought_end_.feed(c, passed) != nullptr;
  tell_text(Kind::kThought, passed);
  if (!has_ended) return;
  white_space_.clear();
  place_ = Place::kProse;
  skips_white_space_ = true;
}

void AnswerParser::take_prose(char c) {
  if (!options_.reads_calls) return tell_text(Kind::kContent, {&c, 1});
  if (may_be_bare_call_ && !is_white_space(c)) {
    may_be_bare_call_ = false;
    if (c == bare_call_beginning(options_.tool_syntax)) return begin_call(c);
  }
  std::string passed;
  const std::string* mark = call_beginning_.feed(c, passed);
  tell_text(Kind::kContent, passed);
  if (mark == nullptr) return;
  held_ = *mark;
  has_told_call_ = false;
  place_ = Place::kBeforeCall;
  // This mark is a part of the call itself, so the call's reader needs it.
  if (*mark == "<function=") {
    held_.clear();
    replay(*mark);
  }
}

void AnswerParser::begin_call(char c) {
  if (is_white_space(c)) {
    held_ += c;
    return;
  }
  has_told_call_ = false;
  const auto tools = options_.tools ? std::span<const ToolDefinition>(*options_.tools)
                                    : std::span<const ToolDefinition>();
  reader_ = make_call_reader(options_.tool_syntax, c, tools);
  place_ = Place::kCall;
  if (reader_ != nullptr) return take_call(c);
  held_ += c;
  give_up_call();
}

void AnswerParser::take_call(char c) {
  held_ += c;
  std::vector<AnswerPart> parts;
  const CallReader::State state = reader_->feed(c, parts);
  take_parts(parts);
  if (state == CallReader::State::kMore) return;
  // A call that is held back and has no end is not JSON.
  if (state == CallReader::State::kBroken || !call_.empty()) return give_up_call();
  held_.clear();
  place_ = Place::kBehindCall;
}

// Returns parts of calls, or holds them back until their call is whole.
void AnswerParser::take_parts(const std::vector<AnswerPart>& parts) {
  if (parts.empty()) return;
  call_.insert(call_.end(), parts.begin(), parts.end());
  if (options_.holds_calls_back && call_.back().kind != Kind::kCallEnd) return;
  held_.clear();
  tell(std::exchange(call_, {}));
}

// Reads text after a call, where a tag may close the call, or another call may follow.
void AnswerParser::take_behind_call(char c) {
  if (holds_more_white_space(c)) return;
  held_ += c;
  const std::string_view text = without_spare_brackets(held_);
  if (text.empty()) return;
  if (text == kCallEndTag) {
    held_.clear();
    place_ = Place::kProse;
    return;
  }
  const char bare_beginning = bare_call_beginning(options_.tool_syntax);
  const bool is_separated = bare_beginning != 0 && text.front() == kBetweenBareCalls;
  const std::string_view next = is_separated ? without_white_space(text.substr(1)) : text;
  if (next.empty()) return;
  if (bare_beginning != 0 && next.front() == bare_beginning) {
    held_.pop_back();
    return begin_call(c);
  }
  if (kCallEndTag.starts_with(text)) return;
  place_ = Place::kProse;
  replay(std::exchange(held_, std::string()));
}

// Treats the held text as prose after all, because it is not part of a call. Parts already returned
// stay. If a call precedes the text, marks are looked for in it.
void AnswerParser::give_up_call() {
  const bool is_behind_call = has_told_call_ && call_.empty() && held_.size() <= kMaxReplayedBytes;
  call_.clear();
  place_ = Place::kProse;
  std::string text = std::exchange(held_, {});
  if (is_behind_call) return replay(text);
  tell_text(Kind::kContent, text);
}

// Ends an answer within a call or before it. The held text is prose unless it is the rest of a call
// that has been returned, or the answer may not have prose.
void AnswerParser::end_call_of_finished_answer() {
  std::vector<AnswerPart> parts;
  if (place_ == Place::kCall) reader_->finish(parts);
  take_parts(parts);
  const bool is_dropped = has_told_call_ || options_.has_only_calls;
  if (!call_.empty() || !is_dropped) tell_text(Kind::kContent, held_);
}

// Reads text again in the new place.
void AnswerParser::replay(std::string_view text) {
  for (const char c : text) take(c);
}

void AnswerParser::tell(const std::vector<AnswerPart>& parts) {
  for (const AnswerPart& part : parts) {
    if (part.kind == Kind::kCall) {
      has_told_call_ = true;
      white_space_.clear();
      drops_calls_ = options_.reads_one_call && num_calls_ > 0;
    }
    if (drops_calls_) continue;
    num_calls_ += part.kind == Kind::kCall ? 1 : 0;
    num_whole_calls_ += part.kind == Kind::kCallEnd ? 1 : 0;
    append_part(parts_, part.kind, part.text);
  }
}

void AnswerParser::tell_text(Kind kind, std::string_view text) {
  for (const char c : text) {
    if (is_white_space(c)) {
      if (!skips_white_space_) white_space_ += c;
      continue;
    }
    skips_white_space_ = false;
    append_part(parts_, kind, std::exchange(white_space_, {}) + c);
  }
}

}  // namespace pagoda
