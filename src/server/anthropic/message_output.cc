#include "server/anthropic/message_output.h"

#include <utility>

#include "core/json.h"
#include "server/generation/answer_json.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

}  // namespace

void MessageOutput::add(const AnswerPart& part, std::vector<Json>& events) {
  if (part.kind == Kind::kCallEnd) return close(events);
  const bool goes_on = !block_.is_null() && part.kind != Kind::kCall &&
                       (part.kind == Kind::kArguments || kind_ == part.kind);
  if (!goes_on) {
    close(events);
    open(part, events);
  }
  if (part.kind == Kind::kCall) return;
  text_ += part.text;
  Json delta = {{"type", "text_delta"}, {"text", part.text}};
  if (part.kind == Kind::kThought) delta = {{"type", "thinking_delta"}, {"thinking", part.text}};
  if (part.kind == Kind::kArguments)
    delta = {{"type", "input_json_delta"}, {"partial_json", part.text}};
  events.push_back(
      {{"type", "content_block_delta"}, {"index", blocks_.size()}, {"delta", std::move(delta)}});
}

void MessageOutput::open(const AnswerPart& part, std::vector<Json>& events) {
  kind_ = part.kind;
  text_.clear();
  if (kind_ == Kind::kCall) {
    block_ = {{"type", "tool_use"},
              {"id", "toolu_" + random_hex_digits().substr(0, 24)},
              {"name", part.text},
              {"input", Json::object()}};
  } else if (kind_ == Kind::kThought) {
    block_ = {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
  } else {
    block_ = {{"type", "text"}, {"text", ""}};
  }
  events.push_back(
      {{"type", "content_block_start"}, {"index", blocks_.size()}, {"content_block", block_}});
}

void MessageOutput::close(std::vector<Json>& events) {
  if (block_.is_null()) return;
  if (kind_ == Kind::kCall) {
    block_["input"] = parse_ordered_json(text_);
  } else {
    block_[kind_ == Kind::kThought ? "thinking" : "text"] = text_;
  }
  events.push_back({{"type", "content_block_stop"}, {"index", blocks_.size()}});
  blocks_.push_back(std::exchange(block_, nullptr));
}

}  // namespace pagoda
