#include "server/llama_cpp/llama_cpp_answers.h"

#include <algorithm>
#include <iterator>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"
#include "server/generation/token_logprobs.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Adds how long `count` tokens took, as llama.cpp names it: `prompt` or `predicted`.
void add_timing(json& timings, const std::string& name, int count, double seconds) {
  const double ms = 1000 * seconds;
  timings[name + "_n"] = count;
  timings[name + "_ms"] = ms;
  timings[name + "_per_token_ms"] = count > 0 ? ms / count : 0.0;
  timings[name + "_per_second"] = ms > 0 ? 1000 * count / ms : 0.0;
}

const json* find_path(const json& object, std::string_view path) {
  const json* found = &object;
  while (true) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (!found->is_object()) return nullptr;
    const auto inner = found->find(path.substr(0, end));
    if (inner == found->end()) return nullptr;
    found = &*inner;
    if (end == path.size()) return found;
    path.remove_prefix(end + 1);
  }
}

// Returns the entries of chat's log-probabilities, with the tokens' ids.
json probabilities_json(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& logprobs) {
  json places = chat_logprobs_content(TokenNaming{tokenizer}, logprobs);
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    places[i]["id"] = logprobs[i].chosen.token_id;
    for (std::size_t j = 0; j < logprobs[i].top.size(); ++j)
      places[i]["top_logprobs"][j]["id"] = logprobs[i].top[j].token_id;
  }
  return places;
}

// A text with its tokens and their probabilities: a part of an answer, or all of it.
struct AnswerText {
  std::string text;
  std::vector<int> token_ids;
  std::vector<TokenLogprobs> logprobs;
};

// Reads an answer into llama.cpp's objects. Thread-compatible.
class LlamaCppReader {
 public:
  LlamaCppReader(std::unique_ptr<LlamaCppJob> job, const ServedModel& model,
                 std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)), model_(model), group_(std::move(group)) {}

  // Appends the text that is ready.
  std::optional<ApiError> take(AnswerText& answer) {
    for (const ChoicePiece& choice : group_->take()) {
      const TextPiece& piece = choice.piece;
      if (auto error = failure_of(piece)) return error;
      if (!first_token_) first_token_ = piece.time;
      if (!job_->only_reads) {
        answer.text += piece.text;
        std::ranges::copy(piece.token_ids, std::back_inserter(answer.token_ids));
        std::ranges::copy(piece.logprobs, std::back_inserter(answer.logprobs));
      }
      last_ = piece;
    }
    return {};
  }
  bool finished() const { return group_->finished(); }

  // Returns whether a part of a stream is worth sending.
  bool has_news(const AnswerText& answer) const {
    const bool shows_tokens = job_->returns_tokens || job_->num_probs > 0;
    return !answer.text.empty() || (shows_tokens && !answer.token_ids.empty());
  }

  // Returns the object of a part of a stream.
  json part(const AnswerText& answer) const {
    json object = {{"index", 0}, {"content", answer.text}, {"stop", false}};
    add_tokens(answer, object);
    if (job_->times_parts) object["timings"] = timings();
    return object;
  }

  // Returns the last object, with the figures.
  json last(const AnswerText& answer) const {
    const Usage& usage = group_->usage();
    json whole = {{"index", 0},
                  {"content", answer.text},
                  {"stop", true},
                  {"model", job_->model_name},
                  {"tokens_predicted", num_predicted()},
                  {"tokens_evaluated", usage.num_prompt_tokens},
                  {"tokens_cached", usage.num_cached_tokens},
                  {"truncated", job_->is_cut},
                  {"stop_type", stop_type()},
                  {"stopping_word", last_.stop_string.value_or("")},
                  {"timings", timings()}};
    add_tokens(answer, whole);
    if (job_->response_fields.empty()) return whole;
    json asked = json::object();
    for (const std::string& path : job_->response_fields) {
      if (const json* found = find_path(whole, path)) asked[path] = *found;
    }
    return asked;
  }

 private:
  int num_predicted() const { return job_->only_reads ? 0 : group_->usage().num_completion_tokens; }

  void add_tokens(const AnswerText& answer, json& object) const {
    if (job_->returns_tokens) object["tokens"] = answer.token_ids;
    if (job_->num_probs > 0)
      object["completion_probabilities"] = probabilities_json(*model_.tokenizer, answer.logprobs);
  }

  json timings() const {
    const Usage& usage = group_->usage();
    const Clock::TimePoint now = Clock::system().now();
    const Clock::TimePoint begun = first_token_.value_or(now);
    json timings = {{"cache_n", usage.num_cached_tokens}};
    add_timing(timings, "prompt", usage.num_prompt_tokens - usage.num_cached_tokens,
               seconds_between(job_->origin.arrival, begun));
    add_timing(timings, "predicted", num_predicted(), seconds_between(begun, now));
    return timings;
  }

  const char* stop_type() const {
    if (job_->only_reads || last_.finish_reason == FinishReason::kLength) return "limit";
    return last_.stop_string ? "word" : "eos";
  }

  std::unique_ptr<LlamaCppJob> job_;
  const ServedModel& model_;
  std::unique_ptr<GenerationGroup> group_;
  TextPiece last_;
  std::optional<Clock::TimePoint> first_token_;
};

class PendingLlamaCpp : public PendingReply {
 public:
  PendingLlamaCpp(std::unique_ptr<LlamaCppJob> job, const ServedModel& model,
                  std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), model, std::move(group)) {}

  std::optional<HttpReply> poll() override {
    if (auto error = reader_.take(answer_)) return HttpReply{error_response(*error), {}};
    if (!reader_.finished()) return {};
    return HttpReply{HttpResponse{.body = json_text(reader_.last(answer_))}, {}};
  }

 private:
  LlamaCppReader reader_;
  AnswerText answer_;
};

class LlamaCppStream : public EventStream {
 public:
  static constexpr int kNumHeldCopies = 0;

  LlamaCppStream(std::unique_ptr<LlamaCppJob> job, const ServedModel& model,
                 std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), model, std::move(group)) {}

  std::string poll() override {
    if (finished_) return "";
    AnswerText answer;
    if (auto error = reader_.take(answer)) {
      finished_ = true;
      return last_words(*error);
    }
    std::string events;
    if (reader_.has_news(answer)) events = sse_event(reader_.part(answer));
    finished_ = reader_.finished();
    if (finished_) events += sse_event(reader_.last({}));
    return events;
  }

  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override { return sse_error_event(error); }

 private:
  LlamaCppReader reader_;
  bool finished_ = false;
};

}  // namespace

std::int64_t LlamaCppJob::num_kept_bytes() const {
  std::size_t num_bytes = prompt_token_ids.size() * sizeof(int);
  for (const std::string& path : response_fields) num_bytes += sizeof(path) + path.size();
  return GenerationJob::num_kept_bytes() + static_cast<std::int64_t>(num_bytes);
}

void LlamaCppJob::drop_submitted() {
  GenerationJob::drop_submitted();
  prompt_token_ids = {};
}

ApiResult<std::unique_ptr<LlamaCppJob>> make_llama_cpp_job(const ApiService& service,
                                                           const HttpRequest& request,
                                                           LlamaCppFields& fields) {
  if (auto error = check_model_name(service, fields.generation.model)) return std::move(*error);
  auto job = std::make_unique<LlamaCppJob>();
  job->origin = request.origin();
  job->only_reads = fields.only_reads();
  job->response_fields = std::move(fields.response_fields);
  job->num_probs = fields.num_probs;
  job->returns_tokens = fields.returns_tokens;
  job->times_parts = fields.times_parts;
  job->generation = std::move(fields.generation);
  job->generation.client = request.client;
  job->model_name = answered_name(service, job->generation.model);
  return job;
}

HttpReply submit_llama_cpp(ApiService& service, std::unique_ptr<LlamaCppJob> job,
                           const Wake& wake) {
  const GenerationFields& fields = job->generation;
  const std::optional<int> asked = job->only_reads ? 1 : fields.max_tokens;
  const int max_tokens =
      resolve_max_tokens(service.model, static_cast<int>(job->prompt_token_ids.size()), asked);
  std::optional<int> logprobs;
  if (job->num_probs > 0) logprobs = job->num_probs;
  SamplingParams sampling =
      to_sampling_params(fields, service.model.defaults, logprobs, max_tokens);
  GroupRequest request;
  request.texts.push_back(
      to_text_request(fields, job->constraints, job->prompt_token_ids, std::move(sampling)));
  return submit_job<LlamaCppStream, PendingLlamaCpp>(service, std::move(job), std::move(request),
                                                     wake);
}

}  // namespace pagoda
