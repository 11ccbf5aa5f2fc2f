#include "server/ollama/ollama.h"

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/ollama/ollama_answers.h"
#include "server/ollama/ollama_request.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr std::string_view kLatest = ":latest";

// Reads a body's object. `streams`: the body leaves `stream` out, so the answer is a stream.
ApiResult<RequestJson> parse_body(const HttpRequest& request, bool& streams) {
  auto body = parse_json_body(request.body);
  if (!body.ok()) return body;
  const auto stream = body->find("stream");
  streams = stream == body->end() || stream->is_null();
  return body;
}

ApiResult<std::unique_ptr<OllamaJob>> loading_job(const ApiService& service, RequestOrigin origin,
                                                  const GenerationFields& fields, bool is_chat) {
  auto job = std::make_unique<OllamaJob>();
  job->only_loads = true;
  job->is_chat = is_chat;
  job->origin = std::move(origin);
  job->generation = fields;
  drop_tag(service, job->generation.model);
  if (auto error = check_model_name(service, job->generation.model)) return std::move(*error);
  job->identity = AnswerIdentity::make("", answered_name(service, job->generation.model));
  return job;
}

ApiResult<std::unique_ptr<OllamaJob>> read_ollama_chat(ApiService& service,
                                                       const HttpRequest& request) {
  bool streams = false;
  auto body = parse_body(request, streams);
  if (!body.ok()) return std::move(body).error();
  if (const auto messages = body->find("messages");
      messages != body->end() && messages->is_array() && messages->empty()) {
    body->erase(messages);
    auto read = read_logged(service, read_ollama_generate_request, *std::move(body));
    if (!read.ok()) return std::move(read).error();
    return loading_job(service, request.origin(), read->chat.generation, /*is_chat=*/true);
  }
  auto read = read_logged(service, read_ollama_chat_request, *std::move(body));
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<OllamaJob>();
  read->generation.stream |= streams;
  read->generation.sampling.n = 1;  // an answer holds one choice
  drop_tag(service, read->generation.model);
  if (auto wrong = prepare_chat(service, request.origin(), *read, "", *job))
    return std::move(*wrong);
  job->hold_calls_back();
  return job;
}

ApiResult<std::unique_ptr<OllamaJob>> read_ollama_generate(ApiService& service,
                                                           const HttpRequest& request) {
  bool streams = false;
  auto body = parse_body(request, streams);
  if (!body.ok()) return std::move(body).error();
  auto read = read_logged(service, read_ollama_generate_request, *std::move(body));
  if (!read.ok()) return std::move(read).error();
  OllamaGenerateRequest& asked = *read;
  asked.chat.generation.stream |= streams;
  if (asked.prompt.empty() && asked.suffix.empty())
    return loading_job(service, request.origin(), asked.chat.generation, /*is_chat=*/false);
  RequestJson messages = RequestJson::array();
  if (!asked.system.empty()) messages.push_back({{"role", "system"}, {"content", asked.system}});
  messages.push_back({{"role", "user"}, {"content", asked.prompt}});
  if (auto wrong = read_messages(messages, asked.chat.prompt)) return std::move(*wrong);
  if (auto wrong = resolve_prompt(asked.chat.tools, asked.chat.reasoning, asked.chat.prompt))
    return std::move(*wrong);
  auto job = std::make_unique<OllamaJob>();
  job->is_chat = false;
  if (asked.is_raw || !asked.suffix.empty()) asked.chat.prompt.raw_text = asked.prompt;
  asked.chat.prompt.suffix = asked.suffix;
  drop_tag(service, asked.chat.generation.model);
  if (auto wrong = prepare_chat(service, request.origin(), asked.chat, "", *job))
    return std::move(*wrong);
  job->repeats_prompt_ids = true;
  return job;
}

HttpResponse loaded_response(const ServedModel& model, const OllamaJob& job) {
  if (auto error = check_chat(job, model)) return error_response(*error);
  json answer = {{"model", job.identity.model},
                 {"created_at", ollama_time()},
                 {"done", true},
                 {"done_reason", "load"}};
  if (job.is_chat) {
    answer["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    answer["response"] = "";
  }
  return json_response(answer);
}

HttpReply submit_ollama(ApiService& service, std::unique_ptr<OllamaJob> job, const Wake& wake) {
  if (job->only_loads) return {loaded_response(service.model, *job), {}};
  return submit_chat<OllamaStream, PendingOllama>(service, std::move(job), wake);
}

}  // namespace

void drop_tag(const ApiService& service, std::string& name) {
  const bool is_served = !check_model_name(service, name);
  if (!is_served && name.ends_with(kLatest)) name.resize(name.size() - kLatest.size());
}

HttpReply handle_ollama_chat(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, read_ollama_chat(service, request), wake, submit_ollama);
}

HttpReply handle_ollama_generate(ApiService& service, const HttpRequest& request,
                                 const Wake& wake) {
  return start_job(service, read_ollama_generate(service, request), wake, submit_ollama);
}

}  // namespace pagoda
