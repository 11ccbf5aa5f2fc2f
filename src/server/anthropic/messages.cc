#include "server/anthropic/messages.h"

#include "core/json.h"
#include "server/anthropic/anthropic_error.h"
#include "server/anthropic/message_output.h"
#include "server/anthropic/messages_request.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/chat/chat_job.h"
#include "server/chat/single_answer.h"

namespace pagoda {
namespace {

class MessageReader {
 public:
  MessageReader(std::unique_ptr<ChatJob> job, std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)), answer_(*job_, std::move(group)) {}

  // Takes the parts that are ready, and appends their events. Returns the error of a failed answer.
  std::optional<ApiError> take(std::vector<OrderedJson>& events) {
    auto error =
        answer_.take([&](const AnswerPart& part, const TextPiece&) { output_.add(part, events); });
    if (!error && finished()) output_.close(events);
    return error;
  }

  bool finished() const { return answer_.finished(); }
  const std::string& request_id() const { return job_->origin.request_id; }

  // Returns the message with the blocks that have ended so far.
  OrderedJson message() const {
    return {{"id", job_->identity.id},     {"type", "message"},
            {"role", "assistant"},         {"model", job_->identity.model},
            {"content", output_.blocks()}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr},    {"usage", usage()}};
  }

  // Returns the fields that say why the message ended.
  OrderedJson end() const {
    const auto& stop_string = answer_.stop_string();
    std::string reason = "end_turn";
    if (stop_string) reason = "stop_sequence";
    if (answer_.is_cut_off()) reason = "max_tokens";
    if (reason == "end_turn" && answer_.has_calls()) reason = "tool_use";
    return {{"stop_reason", reason},
            {"stop_sequence", stop_string ? OrderedJson(*stop_string) : OrderedJson()}};
  }

  OrderedJson usage() const {
    const Usage& usage = answer_.usage();
    return {{"input_tokens", usage.num_prompt_tokens - usage.num_cached_tokens},
            {"cache_read_input_tokens", usage.num_cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"output_tokens", usage.num_completion_tokens}};
  }

 private:
  std::unique_ptr<ChatJob> job_;
  SingleAnswer answer_;
  MessageOutput output_;
};

class PendingMessage : public PendingReply {
 public:
  PendingMessage(std::unique_ptr<ChatJob> job, const ServedModel&,
                 std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), std::move(group)) {}

  std::optional<HttpReply> poll() override {
    std::vector<OrderedJson> events;
    if (auto error = reader_.take(events)) return HttpReply{error_response(*error), {}};
    if (!reader_.finished()) return {};
    OrderedJson message = reader_.message();
    message.update(reader_.end());
    return HttpReply{HttpResponse{.body = json_text(message)}, {}};
  }

 private:
  MessageReader reader_;
};

class MessageStream : public EventStream {
 public:
  // The copies of a call's text: as it was written, as parts until it is whole, and in its block.
  static constexpr int kNumHeldCopies = 3;

  MessageStream(std::unique_ptr<ChatJob> job, const ServedModel&,
                std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), std::move(group)) {}

  std::string poll() override {
    if (finished_) return "";
    std::vector<OrderedJson> events;
    const auto error = reader_.take(events);
    std::string text;
    // The first event has the number of cached tokens, which is known with the answer's first
    // token.
    if (!has_begun_ && (error || !events.empty() || reader_.finished())) {
      has_begun_ = true;
      OrderedJson message = reader_.message();
      message["content"] = OrderedJson::array();
      text += event_text({{"type", "message_start"}, {"message", std::move(message)}});
    }
    for (const OrderedJson& event : events) text += event_text(event);
    if (error) {
      finished_ = true;
      return text + last_words(*error);
    }
    if (!reader_.finished()) return text;
    finished_ = true;
    text += event_text(
        {{"type", "message_delta"}, {"delta", reader_.end()}, {"usage", reader_.usage()}});
    return text + event_text({{"type", "message_stop"}});
  }

  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override {
    return event_text(anthropic_error(error, reader_.request_id()));
  }

 private:
  static std::string event_text(const OrderedJson& event) {
    return "event: " + event.at("type").get<std::string>() + "\n" + sse_event(event);
  }

  MessageReader reader_;
  bool has_begun_ = false;
  bool finished_ = false;
};

ApiResult<std::unique_ptr<ChatJob>> read_message_job(ApiService& service,
                                                     const HttpRequest& request, bool generates) {
  auto read = read_logged(service, read_messages_request, request.body, generates);
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<ChatJob>();
  read->chat.prompt.is_for_counting = !generates;
  if (auto error = prepare_chat(service, request.origin(), read->chat, "msg_", *job))
    return std::move(*error);
  job->hold_calls_back();
  return job;
}

HttpReply tell_count(ApiService& service, std::unique_ptr<ChatJob> job, const Wake&) {
  const std::size_t num_tokens = job->prompt_token_ids.size();
  if (auto error = check_counted(*job, service.model)) return {error_response(*error), {}};
  return {json_response({{"input_tokens", num_tokens}}), {}};
}

}  // namespace

HttpReply handle_messages(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, read_message_job(service, request, /*generates=*/true), wake,
                   submit_chat<MessageStream, PendingMessage, ChatJob>);
}

HttpReply handle_message_count(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, read_message_job(service, request, /*generates=*/false), wake,
                   tell_count);
}

}  // namespace pagoda
