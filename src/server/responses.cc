#include "server/responses.h"

#include "core/json.h"
#include "server/chat_job.h"
#include "server/json_body.h"
#include "server/response_output.h"
#include "server/response_request.h"
#include "server/single_answer.h"
#include "server/token_logprobs.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A chat that answers as a response.
struct ResponseJob : ChatJob {
  ApiService* service = nullptr;
  std::string client;
  RequestJson conversation;  // the messages behind the instructions
  json head;                 // what the answer says of the request
};

ApiError no_response(const std::string& param, const std::string& id) {
  return {404, fmt::format("no response '{}' is stored", id), param, "response_not_found"};
}

json echoed(const RequestJson& value, json fallback) {
  return value.is_null() ? std::move(fallback) : parse_json(json_text(value));
}

// Returns 0.9 of the float nearest to it.
json as_written(float value) {
  return parse_json(fmt::format("{}", value));
}

// Returns what a response repeats of its request.
json head_of(const ResponseRequest& request, const AnswerIdentity& identity,
             const SamplingParams& sampling) {
  const GenerationFields& fields = request.chat.generation;
  json reasoning = echoed(request.reasoning, json::object());
  for (const char* name : {"effort", "summary"}) {
    if (!reasoning.contains(name)) reasoning[name] = nullptr;
  }
  return {{"id", identity.id},
          {"object", "response"},
          {"created_at", identity.created},
          {"model", identity.model},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", request.instructions.empty() ? json() : json(request.instructions)},
          {"max_output_tokens", fields.max_tokens ? json(*fields.max_tokens) : json()},
          {"max_tool_calls", nullptr},
          {"metadata", echoed(request.metadata, json::object())},
          {"parallel_tool_calls", request.chat.tools.has_parallel_calls},
          {"previous_response_id",
           request.previous_response_id.empty() ? json() : json(request.previous_response_id)},
          {"reasoning", std::move(reasoning)},
          {"service_tier", "default"},
          {"store", request.is_stored},
          {"temperature", as_written(sampling.temperature)},
          {"top_p", as_written(sampling.top_p)},
          {"text", {{"format", echoed(request.text_format, {{"type", "text"}})}}},
          {"tool_choice", echoed(request.tool_choice, "auto")},
          {"tools", echoed(request.tools, json::array())},
          {"top_logprobs", request.chat.top_logprobs},
          {"truncation", "disabled"},
          {"user", nullptr}};
}

// Reads the answer of a job, part by part, to the response that tells of it.
class ResponseBuilder {
 public:
  ResponseBuilder(std::unique_ptr<ResponseJob> job, const ServedModel& model,
                  std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        naming_{*model.tokenizer, job_->request.generation.return_tokens_as_token_ids},
        answer_(*job_, std::move(group)) {}

  // Takes what is ready. Returns why the answer failed, if it did.
  std::optional<ApiError> take(std::vector<json>& events) {
    const TextPiece* latest = nullptr;
    auto error = answer_.take([&](const AnswerPart& part, const TextPiece& piece) {
      const bool is_new = latest != &piece;
      latest = &piece;
      if (is_new && job_->request.logprobs && part.kind == AnswerPart::Kind::kContent)
        output_.add_logprobs(chat_logprobs_content(naming_, piece.logprobs));
      output_.add(part, events);
    });
    if (error || !finished()) return error;
    if (output_.is_empty()) output_.add({AnswerPart::Kind::kContent, ""}, events);
    output_.close(answer_.is_cut_off() ? "incomplete" : "completed", events);
    return {};
  }

  bool finished() const { return answer_.finished(); }
  const std::shared_ptr<HeldAnswer>& held() const { return answer_.held(); }

  json response(std::string_view status) const {
    json response = job_->head;
    response["status"] = status;
    response["output"] = output_.items();
    response["usage"] = nullptr;
    return response;
  }

  // Returns the response at its end, which is kept where the request asks for that.
  json finished_response() const {
    json response = this->response(answer_.is_cut_off() ? "incomplete" : "completed");
    if (answer_.is_cut_off()) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const Usage& usage = answer_.usage();
    response["usage"] = {
        {"input_tokens", usage.num_prompt_tokens},
        {"input_tokens_details", {{"cached_tokens", usage.num_cached_tokens}}},
        {"output_tokens", usage.num_completion_tokens},
        {"output_tokens_details", {{"reasoning_tokens", answer_.num_thought_tokens()}}},
        {"total_tokens", usage.num_prompt_tokens + usage.num_completion_tokens}};
    if (!job_->head.at("store").get<bool>()) return response;
    RequestJson messages = job_->conversation;
    messages.push_back(output_.message());
    job_->service->responses.put(job_->client, job_->identity.id,
                                 {json_text(response), json_text(messages)});
    return response;
  }

 private:
  std::unique_ptr<ResponseJob> job_;
  TokenNaming naming_;
  SingleAnswer answer_;
  ResponseOutput output_;
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
    return HttpReply{
        HttpResponse{.body = json_text(builder_.finished_response()), .held = builder_.held()}, {}};
  }

 private:
  ResponseBuilder builder_;
};

class ResponseStream : public EventStream {
 public:
  ResponseStream(std::unique_ptr<ResponseJob> job, const ServedModel& model,
                 std::unique_ptr<GenerationGroup> group)
      : builder_(std::move(job), model, std::move(group)) {}

  std::string poll() override {
    std::string text;
    if (!has_begun_) {
      has_begun_ = true;
      for (const char* type : {"response.created", "response.in_progress"})
        text += event_text({{"type", type}, {"response", builder_.response("in_progress")}});
    }
    if (finished_) return text;
    std::vector<json> events;
    const auto error = builder_.take(events);
    for (json& event : events) text += event_text(std::move(event));
    if (error) {
      finished_ = true;
      json response = builder_.response("failed");
      response["error"] = {{"code", "server_error"}, {"message", error->message}};
      return text + event_text({{"type", "response.failed"}, {"response", std::move(response)}});
    }
    if (!builder_.finished()) return text;
    finished_ = true;
    json response = builder_.finished_response();
    const std::string type = "response." + response.at("status").get<std::string>();
    return text + event_text({{"type", type}, {"response", std::move(response)}});
  }

  bool finished() const override { return finished_; }

 private:
  std::string event_text(json event) {
    event["sequence_number"] = num_events_++;
    return "event: " + event.at("type").get<std::string>() + "\n" + sse_event(event);
  }

  ResponseBuilder builder_;
  int num_events_ = 0;
  bool has_begun_ = false;
  bool finished_ = false;
};

ApiResult<std::unique_ptr<ResponseJob>> prepare_response(ApiService& service,
                                                         const HttpRequest& request) {
  auto read = read_logged(service, read_response_request, request.body);
  if (!read.ok()) return std::move(read).error();
  ResponseRequest& asked = *read;
  RequestJson earlier = RequestJson::array();
  if (const std::string& id = asked.previous_response_id; !id.empty()) {
    const auto found = service.responses.find(request.client, id);
    if (!found) return no_response("previous_response_id", id);
    earlier = parse_ordered_json(found->messages_json);
  }
  if (auto error = settle_messages(earlier, asked)) return std::move(*error);
  auto job = std::make_unique<ResponseJob>();
  job->service = &service;
  job->client = request.client;
  job->conversation = std::move(earlier);
  for (const RequestJson& message : asked.input) job->conversation.push_back(message);
  job->request = asked.chat;
  if (auto error = prepare_chat(service, request, "resp_", *job)) return std::move(*error);
  const SamplingParams sampling =
      to_sampling_params(job->request.generation, service.model.defaults, {}, 1);
  job->head = head_of(asked, job->identity, sampling);
  return job;
}

}  // namespace

HttpReply handle_responses(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, prepare_response(service, request), wake,
                   submit_chat<ResponseStream, PendingResponse, ResponseJob>);
}

HttpResponse stored_response(const ServerFacts& facts) {
  const auto found = facts.service.responses.find(facts.client, facts.parameter);
  if (!found) return error_response(no_response("", facts.parameter));
  return {.body = found->body};
}

HttpResponse delete_response(const ServerFacts& facts) {
  if (!facts.service.responses.erase(facts.client, facts.parameter))
    return error_response(no_response("", facts.parameter));
  return json_response(
      {{"id", facts.parameter}, {"object", "response.deleted"}, {"deleted", true}});
}

}  // namespace pagoda
