#include "server/openai/completions.h"

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"
#include "server/generation/generation_job.h"
#include "server/generation/token_logprobs.h"
#include "server/openai/completion_request.h"
#include "serving/cut_prompt.h"
#include "serving/fill_in_prompt.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A request that has passed every check, with its prompts encoded.
struct CompletionJob : GenerationJob {
  std::optional<int> logprobs;
  AnswerIdentity identity;
  // The prompts, with texts only if the answer repeats them. Ids that it needs are kept to its end.
  std::vector<EncodedPrompt> prompts;
  // max_tokens is 0: one token is generated, so that the prompt is computed, but it is not shown.
  bool echo_only = false;

  const EncodedPrompt& prompt_of(int choice_index) const {
    return prompts[choice_index / generation.sampling.n];
  }
  std::int64_t num_kept_bytes() const {
    std::size_t num_bytes = 0;
    for (const EncodedPrompt& prompt : prompts)
      num_bytes += prompt.text.size() + prompt.token_ids.size() * sizeof(int);
    return GenerationJob::num_kept_bytes() + static_cast<std::int64_t>(num_bytes);
  }
  void drop_submitted() {
    GenerationJob::drop_submitted();
    if (generation.return_token_ids || (generation.echo && logprobs)) return;
    for (EncodedPrompt& prompt : prompts) prompt.token_ids = {};
  }
};

// One choice of an answer, with what has come since the last take().
class CompletionChoice {
 public:
  CompletionChoice(const CompletionJob& job, const ServedModel& model)
      : job_(job),
        model_(model),
        naming_{*model.tokenizer, job.generation.return_tokens_as_token_ids},
        logprobs_(naming_) {}

  void append(const ChoicePiece& choice_piece) {
    const TextPiece& piece = choice_piece.piece;
    if (!started_) start(choice_piece);
    if (piece.finish_reason != FinishReason::kNone) {
      finish_reason_ = piece.finish_reason;
      stop_reason_ = stop_reason_json(piece, model_.config.eos_token_ids);
    }
    if (job_.echo_only) {
      finish_reason_ =
          piece.finish_reason == FinishReason::kNone ? piece.finish_reason : FinishReason::kLength;
      stop_reason_ = nullptr;
      return;
    }
    text_ += piece.text;
    token_ids_.insert(token_ids_.end(), piece.token_ids.begin(), piece.token_ids.end());
    for (std::size_t i = 0; i < piece.logprobs.size(); ++i)
      logprobs_.append(piece.token_ids[i], piece.logprobs[i]);
  }

  // Returns the choice's JSON, with what was appended since the last call (whole answers: the only
  // one).
  json take(int index) {
    const GenerationFields& fields = job_.generation;
    json choice = {{"index", index},
                   {"text", std::move(text_)},
                   {"logprobs", job_.logprobs ? logprobs_.take() : json(nullptr)},
                   {"finish_reason", finish_reason_json(finish_reason_)},
                   {"stop_reason", stop_reason_}};
    if (fields.return_token_ids) {
      choice["token_ids"] = std::move(token_ids_);
      if (!taken_) choice["prompt_token_ids"] = job_.prompt_of(index).token_ids;
    }
    if (fields.prompt_logprobs) choice["prompt_logprobs"] = std::move(prompt_logprobs_);
    text_.clear();
    token_ids_.clear();
    taken_ = true;
    return choice;
  }

  // Returns whether a chunk is worth sending.
  bool has_news() const {
    const bool shows_tokens = job_.logprobs || job_.generation.return_token_ids;
    return !text_.empty() || finish_reason_ != FinishReason::kNone ||
           (shows_tokens && !token_ids_.empty());
  }

 private:
  void start(const ChoicePiece& choice_piece) {
    started_ = true;
    const TextPiece& piece = choice_piece.piece;
    if (job_.generation.prompt_logprobs)
      prompt_logprobs_ = prompt_logprobs_json(naming_, piece.prompt_logprobs);
    if (!job_.generation.echo) return;
    const EncodedPrompt& prompt = job_.prompts[choice_piece.prompt_index];
    text_ = prompt.text;
    if (!job_.logprobs) return;
    for (std::size_t i = 0; i < piece.prompt_logprobs.size(); ++i) {
      logprobs_.append(prompt.token_ids[i], piece.prompt_logprobs[i]);
    }
  }

  const CompletionJob& job_;
  const ServedModel& model_;
  TokenNaming naming_;
  std::string text_;
  std::vector<int> token_ids_;
  CompletionLogprobs logprobs_;
  json prompt_logprobs_;
  FinishReason finish_reason_ = FinishReason::kNone;
  json stop_reason_;
  bool started_ = false;
  bool taken_ = false;
};

Usage shown_usage(const CompletionJob& job, const GenerationGroup& group) {
  Usage usage = group.usage();
  if (job.echo_only) usage.num_completion_tokens = 0;
  return usage;
}

std::vector<CompletionChoice> make_choices(const CompletionJob& job, const ServedModel& model,
                                           int num_choices) {
  std::vector<CompletionChoice> choices;
  choices.reserve(num_choices);
  for (int i = 0; i < num_choices; ++i) choices.emplace_back(job, model);
  return choices;
}

class PendingCompletion : public PendingReply {
 public:
  PendingCompletion(std::unique_ptr<CompletionJob> job, const ServedModel& model,
                    std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        group_(std::move(group)),
        choices_(make_choices(*job_, model, group_->num_choices())) {}

  std::optional<HttpReply> poll() override {
    for (const ChoicePiece& piece : group_->take()) {
      if (auto error = failure_of(piece.piece)) return HttpReply{error_response(*error), {}};
      choices_[piece.choice_index].append(piece);
    }
    if (!group_->finished()) return {};
    json body = job_->identity.head("text_completion");
    body["choices"] = json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i)
      body["choices"].push_back(choices_[i].take(static_cast<int>(i)));
    body["usage"] = usage_json(shown_usage(*job_, *group_));
    return HttpReply{HttpResponse{.body = json_text(body)}, {}};
  }

 private:
  std::unique_ptr<CompletionJob> job_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<CompletionChoice> choices_;
};

class CompletionStream : public EventStream {
 public:
  static constexpr int kNumHeldCopies = 0;

  CompletionStream(std::unique_ptr<CompletionJob> job, const ServedModel& model,
                   std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)),
        group_(std::move(group)),
        choices_(make_choices(*job_, model, group_->num_choices())) {}

  std::string poll() override {
    std::string events;
    for (const ChoicePiece& piece : group_->take()) {
      if (auto error = failure_of(piece.piece)) {
        finished_ = true;
        return events + last_words(*error);
      }
      CompletionChoice& choice = choices_[piece.choice_index];
      choice.append(piece);
      if (choice.has_news()) events += sse_event(chunk({choice.take(piece.choice_index)}));
    }
    if (!finished_ && group_->finished()) {
      finished_ = true;
      if (options().include_usage) events += sse_event(usage_chunk());
      events += kSseDone;
    }
    return events;
  }

  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override { return sse_last_words(error); }

 private:
  StreamOptions options() const {
    return job_->generation.stream_options.value_or(StreamOptions{});
  }

  json chunk(std::initializer_list<json> choices) const {
    json body = job_->identity.head("text_completion");
    body["choices"] = json::array();
    for (const json& choice : choices) body["choices"].push_back(choice);
    if (options().continuous_usage_stats) {
      body["usage"] = usage_json(shown_usage(*job_, *group_));
    } else if (options().include_usage) {
      body["usage"] = nullptr;
    }
    return body;
  }

  json usage_chunk() const {
    json body = chunk({});
    body["usage"] = usage_json(shown_usage(*job_, *group_));
    return body;
  }

  std::unique_ptr<CompletionJob> job_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<CompletionChoice> choices_;
  bool finished_ = false;
};

// Returns the most tokens of each answer; absent: as many as the context leaves.
std::optional<int> most_tokens_of(const CompletionJob& job) {
  const GenerationFields& fields = job.generation;
  if (job.echo_only) return 1;
  if (fields.max_tokens || fields.is_unbounded) return fields.max_tokens;
  return kDefaultCompletionTokens;
}

Result<EncodedPrompt> encode_asked(const ServedModel& model, const CompletionRequest& asked,
                                   const PromptInput& prompt, std::optional<int> max_tokens) {
  if (!asked.suffix.empty())
    return encode_fill_in(model, std::get<std::string>(prompt), asked.suffix,
                          asked.add_special_tokens);
  PAGODA_ASSIGN_OR_RETURN(const std::optional<int> cut_to,
                          resolve_answered_cut(model, asked.truncate_prompt_tokens, max_tokens));
  auto whole = encode_prompt(model, prompt, asked.add_special_tokens);
  const bool is_too_long =
      cut_to && (whole.ok() ? std::ssize(whole->token_ids) > *cut_to
                            : whole.status().reason() == "context_length_exceeded");
  if (!is_too_long) return whole;
  PAGODA_ASSIGN_OR_RETURN(std::vector<int> ids, encode_cut(model, prompt, asked.add_special_tokens,
                                                           {.most = *cut_to}, "prompt"));
  return encode_prompt(model, std::move(ids), asked.add_special_tokens);
}

TextRequest make_text_request(const CompletionJob& job, const ServedModel& model,
                              const EncodedPrompt& prompt) {
  const GenerationFields& fields = job.generation;
  const int max_tokens =
      resolve_max_tokens(model, static_cast<int>(prompt.token_ids.size()), most_tokens_of(job));
  SamplingParams sampling = to_sampling_params(fields, model.defaults, job.logprobs, max_tokens);
  if (fields.echo && job.logprobs && !fields.prompt_logprobs) {
    sampling.prompt_logprobs = job.logprobs;
  }
  return to_text_request(fields, job.constraints, prompt.token_ids, std::move(sampling));
}

ApiResult<std::unique_ptr<CompletionJob>> prepare_completion(ApiService& service,
                                                             const HttpRequest& request) {
  auto read = read_logged(service, read_completion_request, request.body);
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<CompletionJob>();
  job->origin = request.origin();
  const CompletionRequest& asked = *read;
  job->generation = std::move(read->generation);
  job->logprobs = asked.logprobs;
  job->generation.client = request.client;
  const GenerationFields& fields = job->generation;
  if (auto error = check_model_name(service, fields.model)) return std::move(*error);
  job->echo_only = fields.max_tokens == 0;
  job->identity = AnswerIdentity::make("cmpl-", answered_name(service, fields.model));
  for (const PromptInput& prompt : asked.prompts) {
    auto encoded = encode_asked(service.model, asked, prompt, most_tokens_of(*job));
    if (!encoded.ok()) return api_error(encoded.status());
    if (!fields.echo) encoded->text = {};
    job->prompts.push_back(*std::move(encoded));
  }
  return job;
}

HttpReply start(ApiService& service, std::unique_ptr<CompletionJob> job, const Wake& wake) {
  const GenerationFields& fields = job->generation;
  GroupRequest request;
  for (const EncodedPrompt& prompt : job->prompts) {
    request.texts.push_back(make_text_request(*job, service.model, prompt));
    if (fields.echo) request.num_echoed_bytes += std::ssize(prompt.text) * fields.sampling.n;
    if (fields.return_token_ids)
      request.num_echoed_tokens += std::ssize(prompt.token_ids) * fields.sampling.n;
  }
  return submit_job<CompletionStream, PendingCompletion>(service, std::move(job),
                                                         std::move(request), wake);
}

}  // namespace

HttpReply handle_completions(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, prepare_completion(service, request), wake, start);
}

}  // namespace pagoda
