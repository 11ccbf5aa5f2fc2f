#include "server/chat/chat_answers.h"

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"

namespace pagoda {
namespace {

using nlohmann::json;
using Kind = AnswerPart::Kind;

json logprobs_json(const ChatJob& job, const TokenNaming& naming,
                   const std::vector<TokenLogprobs>& logprobs) {
  if (!job.logprobs) return nullptr;
  return {{"content", chat_logprobs_content(naming, logprobs)}};
}

// Returns a new id for a call. Mistral's templates accept only ids of nine letters and digits.
std::string make_call_id(const ServedModel& model) {
  const ToolSyntax syntax = model.answer_format.tool_syntax;
  const bool is_short = syntax == ToolSyntax::kMistral || syntax == ToolSyntax::kMistralV11;
  const std::string digits = random_hex_digits();
  return is_short ? digits.substr(0, 9) : "call_" + digits.substr(0, 24);
}

template <typename Choices>
int num_thought_tokens(const Choices& choices) {
  int sum = 0;
  for (const auto& choice : choices) sum += choice.reader.num_thought_tokens();
  return sum;
}

// Adds a thought by both of its names: vLLM's and OpenRouter's newer clients read `reasoning`.
void tell_thought(const std::string& thought, json& message) {
  for (const char* name : {"reasoning_content", "reasoning"}) message[name] = thought;
}

// Returns a call. `text`: its arguments, or a custom tool's input.
json call_json(bool is_custom, const std::string& id, const std::string& name,
               const std::string& text) {
  const char* type = is_custom ? "custom" : "function";
  const char* key = is_custom ? "input" : "arguments";
  return {{"id", id}, {"type", type}, {type, {{"name", name}, {key, text}}}};
}

}  // namespace

std::vector<AnswerPart> ChoiceReader::parts_of(const TextPiece& piece) {
  std::vector<AnswerPart> parts = reader_.parts_of(piece);
  custom_calls_.tell_inputs(parts);
  // A piece's tokens belong to its first part.
  if (!parts.empty() && parts.front().kind == Kind::kThought)
    num_thought_tokens_ += static_cast<int>(piece.token_ids.size());
  if (!is_thought_told_)
    std::erase_if(parts, [](const AnswerPart& part) { return part.kind == Kind::kThought; });
  return parts;
}

json ChoiceReader::finish_reason(FinishReason reason) const {
  const bool ends_with_calls = has_calls() && !reader_.has_broken_call();
  if (reason == FinishReason::kStop && ends_with_calls)
    return has_functions_ ? "function_call" : "tool_calls";
  return finish_reason_json(reason);
}

PendingChat::PendingChat(std::unique_ptr<ChatJob> job, const ServedModel& model,
                         std::unique_ptr<GenerationGroup> group)
    : job_(std::move(job)),
      model_(model),
      naming_{*model.tokenizer, job_->generation.return_tokens_as_token_ids},
      group_(std::move(group)) {
  for (int i = 0; i < group_->num_choices(); ++i)
    choices_.push_back({.reader = ChoiceReader(*job_), .content = job_->echoed});
}

std::optional<HttpReply> PendingChat::poll() {
  for (ChoicePiece& piece : group_->take()) {
    if (auto error = failure_of(piece.piece)) return HttpReply{error_response(*error), {}};
    append(choices_[piece.choice_index], std::move(piece.piece));
  }
  if (!group_->finished()) return {};
  return HttpReply{HttpResponse{.body = json_text(body())}, {}};
}

void PendingChat::append(Choice& choice, TextPiece piece) {
  for (AnswerPart& part : choice.reader.parts_of(piece)) append_part(choice, std::move(part));
  choice.token_ids.insert(choice.token_ids.end(), piece.token_ids.begin(), piece.token_ids.end());
  choice.logprobs.insert(choice.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
  if (!piece.prompt_logprobs.empty()) prompt_logprobs_ = std::move(piece.prompt_logprobs);
  if (piece.finish_reason == FinishReason::kNone) return;
  choice.finish_reason = piece.finish_reason;
  choice.stop_reason = stop_reason_json(piece, model_.config.eos_token_ids);
}

void PendingChat::append_part(Choice& choice, AnswerPart part) const {
  choice.content += choice.joiner.added_by(part);
  switch (part.kind) {
    case Kind::kContent:
      break;
    case Kind::kThought:
      choice.thought += part.text;
      break;
    case Kind::kCall: {
      const bool is_custom = choice.reader.custom_calls().has(part.text);
      choice.calls.push_back({.id = make_call_id(model_),
                              .name = std::move(part.text),
                              .arguments = {},
                              .is_custom = is_custom});
      break;
    }
    case Kind::kArguments:
      choice.calls.back().arguments += part.text;
      break;
    case Kind::kCallEnd:
      break;
  }
}

json PendingChat::message_json(const Choice& choice) const {
  json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
  if (!choice.thought.empty()) tell_thought(choice.thought, message);
  if (choice.calls.empty()) return message;
  if (choice.content.empty()) message["content"] = nullptr;
  if (job_->has_functions) {
    const Call& call = choice.calls.front();
    message["function_call"] = {{"name", call.name}, {"arguments", call.arguments}};
    return message;
  }
  for (const Call& call : choice.calls)
    message["tool_calls"].push_back(call_json(call.is_custom, call.id, call.name, call.arguments));
  return message;
}

json PendingChat::choice_json(int index, const Choice& choice) const {
  json result = {{"index", index},
                 {"message", message_json(choice)},
                 {"logprobs", logprobs_json(*job_, naming_, choice.logprobs)},
                 {"finish_reason", choice.reader.finish_reason(choice.finish_reason)},
                 {"stop_reason", choice.stop_reason}};
  if (job_->generation.return_token_ids) result["token_ids"] = choice.token_ids;
  return result;
}

json PendingChat::body() const {
  json result = job_->identity.head("chat.completion");
  result["choices"] = json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i)
    result["choices"].push_back(choice_json(static_cast<int>(i), choices_[i]));
  result["usage"] = usage_json(group_->usage(), num_thought_tokens(choices_));
  const GenerationFields& fields = job_->generation;
  if (fields.return_token_ids) result["prompt_token_ids"] = job_->prompt_token_ids;
  if (fields.prompt_logprobs)
    result["prompt_logprobs"] = prompt_logprobs_json(naming_, prompt_logprobs_);
  return result;
}

ChatStream::ChatStream(std::unique_ptr<ChatJob> job, const ServedModel& model,
                       std::unique_ptr<GenerationGroup> group)
    : job_(std::move(job)),
      model_(model),
      naming_{*model.tokenizer, job_->generation.return_tokens_as_token_ids},
      group_(std::move(group)) {
  for (int i = 0; i < group_->num_choices(); ++i)
    choices_.push_back({.reader = ChoiceReader(*job_)});
}

std::string ChatStream::poll() {
  std::string events;
  for (const ChoicePiece& piece : group_->take()) {
    if (auto error = failure_of(piece.piece)) {
      finished_ = true;
      return events + last_words(*error);
    }
    if (!choices_[piece.choice_index].has_role) events += role_event(piece.choice_index);
    events += piece_events(piece);
  }
  if (!finished_ && group_->finished()) {
    finished_ = true;
    if (job_->stream_options().include_usage) events += usage_event();
    events += kSseDone;
  }
  return events;
}

std::string ChatStream::last_words(const ApiError& error) {
  return sse_last_words(error);
}

// Returns the event that names the role. It is not sent before the first token, because clients
// take it as the sign that the answer has begun.
std::string ChatStream::role_event(int index) {
  choices_[index].has_role = true;
  const bool is_first = !has_begun_;
  has_begun_ = true;
  json chunk = make_chunk({{"index", index},
                           {"delta", {{"role", "assistant"}, {"content", job_->echoed}}},
                           {"logprobs", nullptr},
                           {"finish_reason", nullptr}});
  if (is_first && job_->generation.return_token_ids)
    chunk["prompt_token_ids"] = job_->prompt_token_ids;
  return sse_event(chunk);
}

// Returns one event per part. The first event has the piece's tokens, the last an answer's end.
std::string ChatStream::piece_events(const ChoicePiece& choice_piece) {
  const TextPiece& piece = choice_piece.piece;
  Choice& choice = choices_[choice_piece.choice_index];
  const bool ends = piece.finish_reason != FinishReason::kNone;
  const bool shows_ids = job_->generation.return_token_ids;
  const bool shows_tokens = (job_->logprobs || shows_ids) && !piece.token_ids.empty();
  std::vector<json> deltas;
  for (AnswerPart& part : choice.reader.parts_of(piece)) {
    if (part.kind != Kind::kCallEnd) deltas.push_back(delta_of(choice, std::move(part)));
  }
  if (deltas.empty() && (ends || shows_tokens)) deltas.push_back(json::object());
  std::string events;
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const bool is_first = i == 0;
    const bool is_end = ends && i + 1 == deltas.size();
    json event = {
        {"index", choice_piece.choice_index},
        {"delta", std::move(deltas[i])},
        {"logprobs", is_first ? logprobs_json(*job_, naming_, piece.logprobs) : json()},
        {"finish_reason", is_end ? choice.reader.finish_reason(piece.finish_reason) : json()}};
    if (is_end) event["stop_reason"] = stop_reason_json(piece, model_.config.eos_token_ids);
    if (shows_ids) event["token_ids"] = is_first ? piece.token_ids : std::vector<int>();
    events += sse_event(make_chunk(std::move(event)));
  }
  return events;
}

json ChatStream::delta_of(Choice& choice, AnswerPart part) const {
  std::string content = choice.joiner.added_by(part);
  switch (part.kind) {
    case Kind::kContent:
      return {{"content", std::move(content)}};
    case Kind::kThought: {
      json delta = json::object();
      tell_thought(part.text, delta);
      return delta;
    }
    case Kind::kCall:
      ++choice.num_calls;
      choice.has_custom_call = choice.reader.custom_calls().has(part.text);
      return call_delta(choice,
                        call_json(choice.has_custom_call, make_call_id(model_), part.text, ""));
    case Kind::kArguments:
    case Kind::kCallEnd:
      break;
  }
  if (choice.has_custom_call)
    return call_delta(choice, {{"custom", {{"input", std::move(part.text)}}}});
  return call_delta(choice, {{"function", {{"arguments", std::move(part.text)}}}});
}

// Returns the delta of a part of the last call. A function_call is an answer's first call, since it
// has no place for others.
json ChatStream::call_delta(const Choice& choice, json call) const {
  if (job_->has_functions) {
    if (choice.num_calls > 1) return json::object();
    return {{"function_call", std::move(call["function"])}};
  }
  call["index"] = choice.num_calls - 1;
  return {{"tool_calls", json::array({std::move(call)})}};
}

std::string ChatStream::usage_event() const {
  json chunk = job_->identity.head("chat.completion.chunk");
  chunk["choices"] = json::array();
  chunk["usage"] = usage();
  return sse_event(chunk);
}

json ChatStream::usage() const {
  return usage_json(group_->usage(), num_thought_tokens(choices_));
}

json ChatStream::make_chunk(json choice) const {
  json chunk = job_->identity.head("chat.completion.chunk");
  chunk["choices"] = json::array();
  chunk["choices"].push_back(std::move(choice));
  if (job_->stream_options().continuous_usage_stats) {
    chunk["usage"] = usage();
  } else if (job_->stream_options().include_usage) {
    chunk["usage"] = nullptr;
  }
  return chunk;
}

}  // namespace pagoda
