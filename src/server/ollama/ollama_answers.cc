#include "server/ollama/ollama_answers.h"

#include <fmt/chrono.h>

#include "server/base/error_response.h"
#include "server/base/json_body.h"

namespace pagoda {

std::int64_t nanoseconds_between(Clock::TimePoint from, Clock::TimePoint to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

std::string ollama_time(std::int64_t unix_ns) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(unix_ns / 1'000'000'000)),
                     unix_ns / 1000 % 1'000'000);
}

OllamaReader::OllamaReader(std::unique_ptr<OllamaJob> job, const ServedModel& model,
                           std::unique_ptr<GenerationGroup> group)
    : job_(std::move(job)),
      naming_{*model.tokenizer, job_->generation.return_tokens_as_token_ids},
      answer_(*job_, std::move(group)) {}

std::optional<ApiError> OllamaReader::take(std::vector<OrderedJson>& lines) {
  return answer_.take(
      [&](const AnswerPart& part, const TextPiece& piece) {
        if (!first_token_) first_token_ = piece.time;
        take_part(part, lines);
      },
      [&](const TextPiece& piece) { take_tokens(piece); });
}

void OllamaReader::take_tokens(const TextPiece& piece) {
  logprobs_.insert(logprobs_.end(), piece.logprobs.begin(), piece.logprobs.end());
  if (!job_->is_chat)
    token_ids_.insert(token_ids_.end(), piece.token_ids.begin(), piece.token_ids.end());
}

void OllamaReader::take_part(const AnswerPart& part, std::vector<OrderedJson>& lines) {
  const std::string content = joiner_.added_by(part);
  switch (part.kind) {
    case AnswerPart::Kind::kContent:
      content_ += content;
      tell("content", content, lines);
      break;
    case AnswerPart::Kind::kThought:
      thought_ += part.text;
      tell("thinking", part.text, lines);
      break;
    case AnswerPart::Kind::kCall:
      call_name_ = part.text;
      break;
    case AnswerPart::Kind::kArguments:
      call_arguments_ += part.text;
      break;
    case AnswerPart::Kind::kCallEnd:
      tell_call(lines);
      break;
  }
}

void OllamaReader::tell_call(std::vector<OrderedJson>& lines) {
  const OrderedJson call = {
      {"function",
       {{"name", call_name_},
        {"arguments", parse_ordered_json(std::exchange(call_arguments_, {}))}}}};
  calls_.push_back(call);
  tell("tool_calls", OrderedJson::array({call}), lines);
}

void OllamaReader::tell(const char* key, const OrderedJson& value,
                        std::vector<OrderedJson>& lines) {
  if (streams()) lines.push_back(line_of(key, value));
}

OrderedJson OllamaReader::object() const {
  return {{"model", job_->identity.model}, {"created_at", ollama_time()}, {"done", false}};
}

OrderedJson OllamaReader::line_of(const char* key, const OrderedJson& value) {
  OrderedJson line = object();
  if (!logprobs_.empty()) line["logprobs"] = take_logprobs();
  if (!job_->is_chat) {
    line["response"] = "";
    line[std::string_view(key) == "content" ? "response" : key] = value;
    return line;
  }
  line["message"] = {{"role", "assistant"}, {"content", ""}};
  line["message"][key] = value;
  return line;
}

// Returns the log-probabilities that no object has yet. The lists of likeliest tokens are there only
// if they were asked for, as in Ollama.
OrderedJson OllamaReader::take_logprobs() {
  OrderedJson places = chat_logprobs_content(naming_, std::exchange(logprobs_, {}));
  if (job_->top_logprobs > 0) return places;
  for (OrderedJson& place : places) place.erase("top_logprobs");
  return places;
}

OrderedJson OllamaReader::last() {
  const bool whole = !streams();
  OrderedJson line = line_of("content", whole ? content_ : "");
  OrderedJson& message = job_->is_chat ? line["message"] : line;
  if (whole && !thought_.empty()) message["thinking"] = thought_;
  if (whole && !calls_.empty()) message["tool_calls"] = calls_;
  if (!job_->is_chat) {
    line["context"] = job_->prompt_token_ids;
    for (const int id : token_ids_) line["context"].push_back(id);
  }
  const Usage& usage = answer_.usage();
  const Clock::TimePoint now = Clock::system().now();
  const Clock::TimePoint begun = first_token_.value_or(now);
  line["done"] = true;
  line["done_reason"] = answer_.is_cut_off() ? "length" : "stop";
  line["total_duration"] = nanoseconds_between(job_->origin.arrival, now);
  line["load_duration"] = 0;
  line["prompt_eval_count"] = usage.num_prompt_tokens;
  line["prompt_eval_duration"] = nanoseconds_between(job_->origin.arrival, begun);
  line["eval_count"] = usage.num_completion_tokens;
  line["eval_duration"] = nanoseconds_between(begun, now);
  return line;
}

std::optional<HttpReply> PendingOllama::poll() {
  std::vector<OrderedJson> lines;
  if (auto error = reader_.take(lines)) return HttpReply{error_response(*error), {}};
  if (!reader_.finished()) return {};
  return HttpReply{HttpResponse{.body = json_text(reader_.last())}, {}};
}

std::string OllamaStream::poll() {
  if (finished_) return "";
  std::vector<OrderedJson> lines;
  const auto error = reader_.take(lines);
  finished_ = error || reader_.finished();
  if (finished_ && !error) lines.push_back(reader_.last());
  std::string text;
  for (const OrderedJson& line : lines) text += json_text(line) + "\n";
  return error ? text + last_words(*error) : text;
}

std::string ollama_error_body(const ApiError& error) {
  return json_text(OrderedJson({{"error", shown_message(error)}}));
}

std::string OllamaStream::last_words(const ApiError& error) {
  return ollama_error_body(error) + "\n";
}

}  // namespace pagoda
