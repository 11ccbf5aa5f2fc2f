#include "server/chat_completions.h"

#include <nlohmann/json.hpp>

#include "server/answer_json.h"
#include "server/chat_request.h"
#include "server/generation_job.h"
#include "server/json_body.h"
#include "server/prompt_encoding.h"
#include "server/token_logprobs.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A request that has passed every check, with its prompt encoded.
struct ChatJob {
  ChatRequest request;
  Clock::TimePoint arrival;  // of the HTTP request
  AnswerIdentity identity;
  EncodedPrompt prompt;
  Constraints constraints;
  std::string echoed;  // before every answer

  StreamOptions stream_options() const {
    return request.generation.stream_options.value_or(StreamOptions{});
  }
};

json logprobs_json(const ChatJob& job, const TokenNaming& naming,
                   const std::vector<TokenLogprobs>& logprobs) {
  if (!job.request.logprobs) return nullptr;
  return {{"content", chat_logprobs_content(naming, logprobs)}};
}

class PendingChat : public PendingReply {
 public:
  PendingChat(std::unique_ptr<ChatJob> job, const ServedModel& model,
              std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        model_(model),
        naming_{*model.tokenizer, job_->request.generation.return_tokens_as_token_ids},
        group_(std::move(group)),
        choices_(group_->num_choices()) {}

  std::optional<HttpReply> poll() override {
    for (ChoicePiece& piece : group_->take()) {
      if (auto error = failure_of(piece.piece)) return HttpReply{error_response(*error), {}};
      append(piece.choice_index, std::move(piece.piece));
    }
    if (!group_->finished()) return {};
    return HttpReply{HttpResponse{.body = to_json_text(body()), .held = group_->held()}, {}};
  }

 private:
  struct Choice {
    std::string text;
    std::vector<int> token_ids;
    std::vector<TokenLogprobs> logprobs;
    FinishReason finish_reason = FinishReason::kNone;
    json stop_reason;
  };

  void append(int index, TextPiece piece) {
    Choice& choice = choices_[index];
    choice.text += piece.text;
    choice.token_ids.insert(choice.token_ids.end(), piece.token_ids.begin(), piece.token_ids.end());
    choice.logprobs.insert(choice.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
    if (!piece.prompt_logprobs.empty()) prompt_logprobs_ = std::move(piece.prompt_logprobs);
    if (piece.finish_reason == FinishReason::kNone) return;
    choice.finish_reason = piece.finish_reason;
    choice.stop_reason = stop_reason_json(piece, model_.config.eos_token_ids);
  }

  json choice_json(int index, const Choice& choice) const {
    json result = {
        {"index", index},
        {"message",
         {{"role", "assistant"}, {"content", job_->echoed + choice.text}, {"refusal", nullptr}}},
        {"logprobs", logprobs_json(*job_, naming_, choice.logprobs)},
        {"finish_reason", finish_reason_json(choice.finish_reason)},
        {"stop_reason", choice.stop_reason}};
    if (job_->request.generation.return_token_ids) result["token_ids"] = choice.token_ids;
    return result;
  }

  json body() const {
    json result = job_->identity.head("chat.completion");
    result["choices"] = json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      result["choices"].push_back(choice_json(static_cast<int>(i), choices_[i]));
    }
    result["usage"] = usage_json(group_->usage());
    const GenerationFields& fields = job_->request.generation;
    if (fields.return_token_ids) result["prompt_token_ids"] = job_->prompt.token_ids;
    if (fields.prompt_logprobs)
      result["prompt_logprobs"] = prompt_logprobs_json(naming_, prompt_logprobs_);
    return result;
  }

  std::unique_ptr<ChatJob> job_;
  const ServedModel& model_;
  TokenNaming naming_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<Choice> choices_;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs_;
};

class ChatStream : public EventStream {
 public:
  ChatStream(std::unique_ptr<ChatJob> job, const ServedModel& model,
             std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        model_(model),
        naming_{*model.tokenizer, job_->request.generation.return_tokens_as_token_ids},
        group_(std::move(group)),
        has_role_(group_->num_choices(), false) {}

  std::string poll() override {
    std::string events;
    for (const ChoicePiece& piece : group_->take()) {
      if (auto error = failure_of(piece.piece)) {
        finished_ = true;
        return events + sse_error_event(*error) + std::string(kSseDone);
      }
      if (!has_role_[piece.choice_index]) events += role_event(piece.choice_index);
      if (has_news(piece.piece)) events += piece_event(piece);
    }
    if (!finished_ && group_->finished()) {
      finished_ = true;
      if (job_->stream_options().include_usage) events += usage_event();
      events += kSseDone;
    }
    return events;
  }

  bool finished() const override { return finished_; }

 private:
  bool has_news(const TextPiece& piece) const {
    const bool shows_tokens = job_->request.logprobs || job_->request.generation.return_token_ids;
    return !piece.text.empty() || piece.finish_reason != FinishReason::kNone ||
           (shows_tokens && !piece.token_ids.empty());
  }

  // Not before the first token: clients take it as the sign that the answer has begun.
  std::string role_event(int index) {
    has_role_[index] = true;
    const bool is_first = !has_begun_;
    has_begun_ = true;
    json chunk = make_chunk({{"index", index},
                             {"delta", {{"role", "assistant"}, {"content", job_->echoed}}},
                             {"logprobs", nullptr},
                             {"finish_reason", nullptr}});
    if (is_first && job_->request.generation.return_token_ids)
      chunk["prompt_token_ids"] = job_->prompt.token_ids;
    return sse_event(chunk);
  }

  std::string piece_event(const ChoicePiece& choice_piece) const {
    const TextPiece& piece = choice_piece.piece;
    json delta = json::object();
    if (!piece.text.empty()) delta["content"] = piece.text;
    json choice = {{"index", choice_piece.choice_index},
                   {"delta", std::move(delta)},
                   {"logprobs", logprobs_json(*job_, naming_, piece.logprobs)},
                   {"finish_reason", finish_reason_json(piece.finish_reason)}};
    if (piece.finish_reason != FinishReason::kNone) {
      choice["stop_reason"] = stop_reason_json(piece, model_.config.eos_token_ids);
    }
    if (job_->request.generation.return_token_ids) choice["token_ids"] = piece.token_ids;
    return sse_event(make_chunk(std::move(choice)));
  }

  std::string usage_event() const {
    json chunk = job_->identity.head("chat.completion.chunk");
    chunk["choices"] = json::array();
    chunk["usage"] = usage_json(group_->usage());
    return sse_event(chunk);
  }

  json make_chunk(json choice) const {
    json chunk = job_->identity.head("chat.completion.chunk");
    chunk["choices"] = json::array();
    chunk["choices"].push_back(std::move(choice));
    if (job_->stream_options().continuous_usage_stats) {
      chunk["usage"] = usage_json(group_->usage());
    } else if (job_->stream_options().include_usage) {
      chunk["usage"] = nullptr;
    }
    return chunk;
  }

  std::unique_ptr<ChatJob> job_;
  const ServedModel& model_;
  TokenNaming naming_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<bool> has_role_;
  bool has_begun_ = false;
  bool finished_ = false;
};

ApiResult<std::unique_ptr<ChatJob>> prepare_chat(ApiService& service, const HttpRequest& request) {
  std::vector<std::string> unknown_names;
  auto read = read_chat_request(request.body, unknown_names);
  service.unknown_fields.report(unknown_names);
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<ChatJob>();
  job->arrival = request.arrival;
  job->request = *std::move(read);
  keep_cache_to(request.client, job->request.generation);
  const std::string& model_name = job->request.generation.model;
  if (auto error = check_model_name(service, model_name)) return std::move(*error);
  job->identity = AnswerIdentity::make(
      "chatcmpl-", model_name.empty() ? service.model_names.front() : model_name);
  if (job->request.generation.echo) job->echoed = job->request.prompt.last_message_text;
  auto encoded = encode_chat_prompt(service.model, job->request.prompt);
  if (!encoded.ok()) return std::move(encoded).error();
  job->prompt = *std::move(encoded);
  return job;
}

ApiResult<TextRequest> make_text_request(const ChatJob& job, const ServedModel& model) {
  const GenerationFields& fields = job.request.generation;
  const int num_prompt_tokens = static_cast<int>(job.prompt.token_ids.size());
  auto max_tokens = settle_max_tokens(model, num_prompt_tokens, fields.max_tokens, std::nullopt);
  if (!max_tokens.ok()) return std::move(max_tokens).error();
  std::optional<int> logprobs;
  if (job.request.logprobs) logprobs = job.request.top_logprobs;
  return to_text_request(fields, job.constraints, job.prompt.token_ids,
                         to_sampling_params(fields, model.defaults, logprobs, *max_tokens));
}

HttpReply start(ApiService& service, std::unique_ptr<ChatJob> job, const Wake& wake) {
  auto made = make_text_request(*job, service.model);
  if (!made.ok()) return {error_response(made.error()), {}};
  const GenerationFields& fields = job->request.generation;
  GroupRequest request = {.num_echoed_bytes = std::ssize(job->echoed) * fields.sampling.n,
                          .is_streamed = fields.stream,
                          .arrival = job->arrival};
  if (fields.return_token_ids) request.num_echoed_tokens = std::ssize(job->prompt.token_ids);
  request.texts.push_back(*std::move(made));
  return submit_job<ChatStream, PendingChat>(service, std::move(job), std::move(request), wake);
}

}  // namespace

HttpReply handle_chat_completions(ApiService& service, const HttpRequest& request,
                                  const Wake& wake) {
  return start_job(service, prepare_chat(service, request), wake, start);
}

}  // namespace pagoda
