#include "server/responses/responses.h"

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/chat/chat_job.h"
#include "server/chat/single_answer.h"
#include "server/generation/token_logprobs.h"
#include "server/responses/response_output.h"
#include "server/responses/response_request.h"
#include "server/responses/stored_items.h"
#include "server/responses/stored_responses.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A chat whose answer is a response.
struct ResponseJob : ChatJob {
  ApiService* service = nullptr;
  SharedText earlier;      // the conversation that it continues; null: none
  std::string input_json;  // the request's own messages, a JSON list
  std::string head_json;   // the fields known from the request, a JSON object
  bool is_stored = false;

  std::int64_t num_kept_bytes() const {
    const std::size_t num_earlier = earlier ? earlier->view().size() : 0;
    return ChatJob::num_kept_bytes() +
           static_cast<std::int64_t>(num_earlier + input_json.size() + head_json.size());
  }
};

json echoed(const RequestJson& value, json fallback) {
  return value.is_null() ? std::move(fallback) : parse_json(json_text(value));
}

// Returns the shortest decimal number of a float: 0.9 for 0.9f.
json as_written(float value) {
  return parse_json(fmt::format("{}", value));
}

// Returns the joined texts. They may be megabytes, so there is no copy in between.
std::string joined(std::initializer_list<std::string_view> texts) {
  std::size_t num_bytes = 0;
  for (const std::string_view text : texts) num_bytes += text.size();
  std::string whole;
  whole.reserve(num_bytes);
  for (const std::string_view text : texts) whole += text;
  return whole;
}

// Returns an object's text with the fields of another object appended. Neither is empty.
std::string with_fields(std::string_view object, const json& more) {
  return joined({object.substr(0, object.size() - 1), ",", json_text(more).substr(1)});
}

// Returns the text of a list with the elements of all the lists.
std::string joined_lists(std::initializer_list<std::string_view> lists) {
  std::string text = "[";
  for (const std::string_view list : lists) {
    if (list.size() <= 2) continue;  // an empty list
    if (text.size() > 1) text += ',';
    text += list.substr(1, list.size() - 2);
  }
  return text + "]";
}

// Returns the fields of a response that repeat its request.
json head_of(const ResponseRequest& request, const ResponseJob& job,
             const SamplingParams& sampling) {
  json reasoning = echoed(request.reasoning, json::object());
  for (const char* name : {"effort", "summary"}) {
    if (!reasoning.contains(name)) reasoning[name] = nullptr;
  }
  const std::optional<int>& max_tokens = job.generation.max_tokens;
  return {{"id", job.identity.id},
          {"object", "response"},
          {"created_at", job.identity.created},
          {"model", job.identity.model},
          {"background", false},
          {"instructions", request.instructions.empty() ? json() : json(request.instructions)},
          {"max_output_tokens", max_tokens ? json(*max_tokens) : json()},
          {"max_tool_calls", nullptr},
          {"metadata", echoed(request.metadata, json::object())},
          {"parallel_tool_calls", request.chat.tools.has_parallel_calls},
          {"previous_response_id",
           request.previous_response_id.empty() ? json() : json(request.previous_response_id)},
          {"reasoning", std::move(reasoning)},
          {"service_tier", "default"},
          {"temperature", as_written(sampling.temperature)},
          {"top_p", as_written(sampling.top_p)},
          {"text", {{"format", echoed(request.text_format, {{"type", "text"}})}}},
          {"tool_choice", echoed(request.tool_choice, "auto")},
          {"tools", echoed(request.tools, json::array())},
          {"top_logprobs", job.top_logprobs},
          {"truncation", "disabled"},
          {"user", nullptr}};
}

// A builder of a response from the parts of a job's answer.
class ResponseBuilder {
 public:
  ResponseBuilder(std::unique_ptr<ResponseJob> job, const ServedModel& model,
                  std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        naming_{*model.tokenizer, job_->generation.return_tokens_as_token_ids},
        answer_(*job_, std::move(group)),
        output_(job_->identity.id, answer_.custom_calls()) {}

  // Takes the parts that are ready, and appends their events. Returns the error of a failed answer.
  std::optional<ApiError> take(std::vector<json>& events) {
    auto error = answer_.take(
        [&](const AnswerPart& part, const TextPiece&) {
          if (part.kind == AnswerPart::Kind::kContent && !held_logprobs_.empty())
            output_.add_logprobs(chat_logprobs_content(naming_, held_logprobs_));
          held_logprobs_.clear();
          output_.add(part, events);
        },
        [&](const TextPiece& piece) {
          if (!job_->logprobs) return;
          held_logprobs_.insert(held_logprobs_.end(), piece.logprobs.begin(), piece.logprobs.end());
        });
    if (error || !finished()) return error;
    if (output_.is_empty()) output_.add({AnswerPart::Kind::kContent, ""}, events);
    output_.close(final_status(), events);
    return {};
  }

  bool finished() const { return answer_.finished(); }

  // Returns the response so far, as JSON text.
  std::string response_text(std::string_view status, json error = nullptr) const {
    return with_fields(job_->head_json, {{"status", status},
                                         {"error", std::move(error)},
                                         {"incomplete_details", nullptr},
                                         {"output", output_.items()},
                                         {"store", job_->is_stored},
                                         {"usage", nullptr}});
  }

  std::string_view final_status() const {
    return answer_.is_cut_off() ? "incomplete" : "completed";
  }

  // Returns the finished response. It is stored if the request asks for that and there is room; its
  // field `store` says whether it is.
  HttpResponse finished_response() const {
    json end = {{"status", final_status()},      {"error", nullptr},
                {"incomplete_details", nullptr}, {"output", output_.items()},
                {"store", job_->is_stored},      {"usage", usage()}};
    if (answer_.is_cut_off()) end["incomplete_details"] = {{"reason", "max_output_tokens"}};
    std::string text = with_fields(job_->head_json, end);
    if (!job_->is_stored) return {.body = std::move(text)};
    if (SharedText kept = keep(std::move(text))) return {.shared_body = std::move(kept)};
    end["store"] = false;
    return {.body = with_fields(job_->head_json, end)};
  }

 private:
  json usage() const {
    const Usage& usage = answer_.usage();
    return {{"input_tokens", usage.num_prompt_tokens},
            {"input_tokens_details",
             {{"cached_tokens", usage.num_cached_tokens}, {"cache_write_tokens", 0}}},
            {"output_tokens", usage.num_completion_tokens},
            {"output_tokens_details", {{"reasoning_tokens", answer_.num_thought_tokens()}}},
            {"total_tokens", usage.num_prompt_tokens + usage.num_completion_tokens}};
  }

  // Stores a response, given as JSON text, with its conversation. Returns its stored text; null:
  // there is no room.
  SharedText keep(std::string text) const {
    const std::string answered = "[" + json_text(output_.message()) + "]";
    const std::string_view earlier = job_->earlier ? job_->earlier->view() : "";
    std::string messages = joined_lists({earlier, job_->input_json, answered});
    ApiService& service = *job_->service;
    const auto max_model_len =
        static_cast<std::size_t>(service.model.engine->limits().max_model_len);
    if (text.size() + messages.size() > kKeptBytesBesides + kKeptBytesPerToken * max_model_len)
      return nullptr;
    const auto account = std::make_shared<MemoryAccount>(service.memory);
    auto body = HeldText::make(account, std::move(text));
    auto conversation = HeldText::make(account, std::move(messages));
    if (!body.ok() || !conversation.ok()) return nullptr;
    // The brackets of a list, and a comma, stand before the input.
    const std::size_t offset = earlier.size() > 2 ? earlier.size() : 1;
    service.responses.put(job_->origin.client, job_->identity.id,
                          {.body = *body,
                           .messages = *conversation,
                           .input_offset = offset,
                           .num_input_bytes = job_->input_json.size() - 2});
    return *body;
  }

  std::unique_ptr<ResponseJob> job_;
  TokenNaming naming_;
  SingleAnswer answer_;
  ResponseOutput output_;
  std::vector<TokenLogprobs> held_logprobs_;  // of the tokens whose text has not come out
};

class PendingResponse : public PendingReply {
 public:
  PendingResponse(std::unique_ptr<ResponseJob> job, const ServedModel& model,
                  std::unique_ptr<GenerationGroup> group)
      : builder_(std::move(job), model, std::move(group)) {}

  std::optional<HttpReply> poll() override {
    std::vector<json> events;
    if (auto error = builder_.take(events)) return HttpReply{error_response(*error), {}};
    if (!builder_.finished()) return {};
    return HttpReply{builder_.finished_response(), {}};
  }

 private:
  ResponseBuilder builder_;
};

class ResponseStream : public EventStream {
 public:
  // The copies of the answer's text and log-probabilities: in an item, in the three events that
  // report the item, and in the final response.
  static constexpr int kNumHeldCopies = 5;

  ResponseStream(std::unique_ptr<ResponseJob> job, const ServedModel& model,
                 std::unique_ptr<GenerationGroup> group)
      : builder_(std::move(job), model, std::move(group)) {}

  std::string poll() override {
    // One event per call, since each repeats the request, which may be megabytes.
    if (num_events_ < 2) {
      return event_of(num_events_ == 0 ? "response.created" : "response.in_progress",
                      builder_.response_text("in_progress"));
    }
    if (finished_) return "";
    std::string text;
    std::vector<json> events;
    const auto error = builder_.take(events);
    for (json& event : events) text += event_text(std::move(event));
    if (error) {
      finished_ = true;
      const json said = {{"code", "server_error"}, {"message", error->message}};
      return text + event_of("response.failed", builder_.response_text("failed", said));
    }
    if (!builder_.finished()) return text;
    finished_ = true;
    const std::string type = "response." + std::string(builder_.final_status());
    return text + event_of(type, builder_.finished_response().text());
  }

  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override {
    return event_text({{"type", "error"},
                       {"code", "server_error"},
                       {"message", error.message},
                       {"param", nullptr}});
  }

 private:
  // Returns an event with a response, which is given as JSON text.
  std::string event_of(std::string_view type, std::string_view response) {
    const std::string head = fmt::format(
        "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},\"response\":", type,
        num_events_++);
    return joined({head, response, "}\n\n"});
  }
  std::string event_text(json event) {
    event["sequence_number"] = num_events_++;
    return "event: " + event.at("type").get<std::string>() + "\n" + sse_event(event);
  }

  ResponseBuilder builder_;
  int num_events_ = 0;
  bool finished_ = false;
};

// A request whose body is parsed, and the stored responses that it needs.
struct AskedResponse {
  RequestOrigin origin;
  RequestJson body;
  SharedText earlier;  // the conversation that it continues; null: none
  ReferencedResponses referenced;

  std::size_t num_stored_bytes() const {
    std::size_t num_bytes = earlier ? earlier->view().size() : 0;
    for (const auto& [id, response] : referenced) num_bytes += response.num_bytes();
    return num_bytes;
  }
};

ApiResult<AskedResponse> find_asked(const ApiService& service, const HttpRequest& request) {
  auto body = parse_json_body(request.body);
  if (!body.ok()) return std::move(body).error();
  AskedResponse asked = {.origin = request.origin(), .body = *std::move(body)};
  const RequestJson& previous = value_of(asked.body, "previous_response_id");
  if (previous.is_string() && previous != RequestJson("")) {
    const auto id = previous.get<std::string>();
    const auto found = service.responses.find(request.client, id);
    if (!found) return no_response("previous_response_id", id);
    asked.earlier = found->messages;
  }
  auto referenced =
      find_referenced(service.responses, request.client, value_of(asked.body, "input"));
  if (!referenced.ok()) return std::move(referenced).error();
  asked.referenced = *std::move(referenced);
  return asked;
}

// Makes the job of a request. `generates`: false if only the prompt's tokens are to be counted.
ApiResult<std::unique_ptr<ResponseJob>> prepare_response(ApiService& service, AskedResponse asked,
                                                         bool generates) {
  if (const auto input = asked.body.find("input"); input != asked.body.end()) {
    if (auto error = resolve_references(asked.referenced, *input)) return std::move(*error);
  }
  auto read = read_logged(service, read_response_fields, std::move(asked.body));
  if (!read.ok()) return std::move(read).error();
  ResponseRequest& request = *read;
  request.chat.prompt.is_for_counting = !generates;
  auto job = std::make_unique<ResponseJob>();
  job->service = &service;
  job->has_custom_calls = true;
  job->earlier = std::move(asked.earlier);
  job->input_json = json_text(request.input);
  job->is_stored = request.is_stored;
  RequestJson earlier = RequestJson::array();
  if (job->earlier) earlier = parse_ordered_json(job->earlier->view());
  if (auto error = resolve_messages(std::move(earlier), request)) return std::move(*error);
  if (auto error = prepare_chat(service, std::move(asked.origin), request.chat, "resp_", *job))
    return std::move(*error);
  const SamplingParams sampling =
      to_sampling_params(job->generation, service.model.defaults, {}, 1);
  job->head_json = json_text(head_of(request, *job, sampling));
  return job;
}

HttpReply start_response(ApiService& service, AskedResponse asked, const Wake& wake) {
  return start_job(service, prepare_response(service, std::move(asked), /*generates=*/true), wake,
                   submit_chat<ResponseStream, PendingResponse, ResponseJob>);
}

HttpReply tell_count(ApiService& service, std::unique_ptr<ResponseJob> job, const Wake&) {
  const std::size_t num_tokens = job->prompt_token_ids.size();
  if (auto error = check_counted(*job, service.model)) return {error_response(*error), {}};
  return {json_response({{"object", "response.input_tokens"}, {"input_tokens", num_tokens}}), {}};
}

HttpReply count_response(ApiService& service, AskedResponse asked, const Wake& wake) {
  return start_job(service, prepare_response(service, std::move(asked), /*generates=*/false), wake,
                   tell_count);
}

// Returns the reply of `start`. A short request may need long stored responses, which decide the
// lane.
HttpReply start_in_lane(ApiService& service, const HttpRequest& request, const Wake& wake,
                        HttpReply (*start)(ApiService&, AskedResponse, const Wake&)) {
  auto asked = find_asked(service, request);
  if (!asked.ok()) return {error_response(asked.error()), {}};
  const std::size_t num_bytes = request.body.size() + asked->num_stored_bytes();
  const TextLane lane = lane_of_text(num_bytes);
  if (lane == lane_of_text(request.body.size())) return start(service, *std::move(asked), wake);
  HeldBytes kept(request.held);
  if (const Status room = kept.grow(static_cast<std::int64_t>(num_bytes)); !room.ok())
    return {error_response(api_error(room)), {}};
  auto work = [&service, wake, start, asked = *std::move(asked), kept = std::move(kept)]() mutable {
    return start(service, std::move(asked), wake);
  };
  return service.text_workers.run({.lane = lane, .num_bytes = num_bytes}, wake, std::move(work));
}

}  // namespace

HttpReply handle_responses(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_in_lane(service, request, wake, start_response);
}

HttpReply handle_response_count(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_in_lane(service, request, wake, count_response);
}

}  // namespace pagoda
