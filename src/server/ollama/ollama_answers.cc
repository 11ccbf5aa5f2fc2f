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

OllamaReader::OllamaReader(std::unique_ptr<OllamaJob> job, std::unique_ptr<GenerationGroup> group)
    : job_(std::move(job)), answer_(*job_, std::move(group)) {}

std::optional<ApiError> OllamaReader::take(std::vector<OrderedJson>& lines) {
  auto error = answer_.take([&](const AnswerPart& part, const TextPiece& piece) {
    if (!first_token_) first_token_ = piece.time;
    const std::string content = joiner_.added_by(part);
    switch (part.kind) {
      case AnswerPart::Kind::kContent:
        content_ += content;
        lines.push_back(line_of("content", content));
        break;
      case AnswerPart::Kind::kThought:
        thought_ += part.text;
        lines.push_back(line_of("thinking", part.text));
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
  });
  return error;
}

void OllamaReader::tell_call(std::vector<OrderedJson>& lines) {
  const OrderedJson call = {
      {"function",
       {{"name", call_name_},
        {"arguments", parse_ordered_json(std::exchange(call_arguments_, {}))}}}};
  calls_.push_back(call);
  lines.push_back(line_of("tool_calls", OrderedJson::array({call})));
}

OrderedJson OllamaReader::object() const {
  return {{"model", job_->identity.model}, {"created_at", ollama_time()}, {"done", false}};
}

OrderedJson OllamaReader::line_of(const char* key, const OrderedJson& value) const {
  OrderedJson line = object();
  if (!job_->is_chat) {
    line["response"] = "";
    line[std::string_view(key) == "content" ? "response" : key] = value;
    return line;
  }
  line["message"] = {{"role", "assistant"}, {"content", ""}};
  line["message"][key] = value;
  return line;
}

OrderedJson OllamaReader::last(bool whole) const {
  const std::string content = whole ? content_ : "";
  OrderedJson line = line_of("content", content);
  OrderedJson& message = job_->is_chat ? line["message"] : line;
  if (whole && !thought_.empty()) message["thinking"] = thought_;
  if (whole && !calls_.empty()) message["tool_calls"] = calls_;
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
  return HttpReply{HttpResponse{.body = json_text(reader_.last(/*whole=*/true))}, {}};
}

std::string OllamaStream::poll() {
  if (finished_) return "";
  std::vector<OrderedJson> lines;
  const auto error = reader_.take(lines);
  finished_ = error || reader_.finished();
  if (finished_ && !error) lines.push_back(reader_.last(/*whole=*/false));
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
