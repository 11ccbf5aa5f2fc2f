#include "server/llama_cpp/infill.h"

#include <algorithm>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"
#include "server/generation/generation_job.h"
#include "server/llama_cpp/infill_request.h"
#include "serving/fill_in_prompt.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A request that has passed every check, with its prompt encoded.
struct InfillJob : GenerationJob {
  std::string model_name;
  CutPrompt prompt;  // without token ids after submission
  bool only_reads = false;
  std::vector<std::string> response_fields;  // InfillRequest::response_fields

  std::int64_t num_kept_bytes() const {
    std::size_t num_bytes = prompt.token_ids.size() * sizeof(int);
    for (const std::string& path : response_fields) num_bytes += sizeof(path) + path.size();
    return GenerationJob::num_kept_bytes() + static_cast<std::int64_t>(num_bytes);
  }
  void drop_submitted() {
    GenerationJob::drop_submitted();
    prompt.token_ids = {};
  }
};

// Adds the time that `count` tokens took, under llama.cpp's names. `name`: "prompt" or "predicted".
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

// A reader of an answer that returns llama.cpp's objects. Thread-compatible.
class InfillReader {
 public:
  InfillReader(std::unique_ptr<InfillJob> job, std::unique_ptr<GenerationGroup> group)
      : job_(std::move(job)), group_(std::move(group)) {}

  // Appends the text that is ready. Returns the error if the answer failed.
  std::optional<ApiError> take(std::string& text) {
    for (const ChoicePiece& choice : group_->take()) {
      if (auto error = failure_of(choice.piece)) return error;
      if (!first_token_) first_token_ = choice.piece.time;
      if (!job_->only_reads) text += choice.piece.text;
      last_ = choice.piece;
    }
    return {};
  }
  bool finished() const { return group_->finished(); }

  static json part(const std::string& text) { return {{"content", text}, {"stop", false}}; }

  // Returns the last object, with counts and times.
  json last(const std::string& text) const {
    const Usage& usage = group_->usage();
    const int num_predicted = job_->only_reads ? 0 : usage.num_completion_tokens;
    const Clock::TimePoint now = Clock::system().now();
    const Clock::TimePoint begun = first_token_.value_or(now);
    json timings = {{"cache_n", usage.num_cached_tokens}};
    add_timing(timings, "prompt", usage.num_prompt_tokens - usage.num_cached_tokens,
               seconds_between(job_->origin.arrival, begun));
    add_timing(timings, "predicted", num_predicted, seconds_between(begun, now));
    json whole = {{"content", text},
                  {"stop", true},
                  {"model", job_->model_name},
                  {"tokens_predicted", num_predicted},
                  {"tokens_evaluated", usage.num_prompt_tokens},
                  {"tokens_cached", usage.num_cached_tokens},
                  {"truncated", job_->prompt.is_cut},
                  {"stop_type", stop_type()},
                  {"stopping_word", last_.stop_string.value_or("")},
                  {"timings", std::move(timings)}};
    if (job_->response_fields.empty()) return whole;
    json asked = json::object();
    for (const std::string& path : job_->response_fields) {
      if (const json* found = find_path(whole, path)) asked[path] = *found;
    }
    return asked;
  }

 private:
  const char* stop_type() const {
    if (job_->only_reads || last_.finish_reason == FinishReason::kLength) return "limit";
    return last_.stop_string ? "word" : "eos";
  }

  std::unique_ptr<InfillJob> job_;
  std::unique_ptr<GenerationGroup> group_;
  TextPiece last_;
  std::optional<Clock::TimePoint> first_token_;
};

class PendingInfill : public PendingReply {
 public:
  PendingInfill(std::unique_ptr<InfillJob> job, const ServedModel&,
                std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), std::move(group)) {}

  std::optional<HttpReply> poll() override {
    if (auto error = reader_.take(text_)) return HttpReply{error_response(*error), {}};
    if (!reader_.finished()) return {};
    return HttpReply{HttpResponse{.body = json_text(reader_.last(text_))}, {}};
  }

 private:
  InfillReader reader_;
  std::string text_;
};

class InfillStream : public EventStream {
 public:
  static constexpr int kNumHeldCopies = 0;

  InfillStream(std::unique_ptr<InfillJob> job, const ServedModel&,
               std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), std::move(group)) {}

  std::string poll() override {
    if (finished_) return "";
    std::string text;
    if (auto error = reader_.take(text)) {
      finished_ = true;
      return last_words(*error);
    }
    std::string events;
    if (!text.empty()) events = sse_event(InfillReader::part(text));
    finished_ = reader_.finished();
    if (finished_) events += sse_event(reader_.last(""));
    return events;
  }

  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override { return sse_error_event(error); }

 private:
  InfillReader reader_;
  bool finished_ = false;
};

ApiResult<std::unique_ptr<InfillJob>> prepare_infill(ApiService& service,
                                                     const HttpRequest& request) {
  auto read = read_logged(service, read_infill_request, request.body);
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<InfillJob>();
  job->origin = request.origin();
  if (auto error = check_model_name(service, read->generation.model)) return std::move(*error);
  auto prompt = encode_at_cursor(service.model, read->texts, read->generation.max_tokens);
  if (!prompt.ok()) return api_error(prompt.status());
  job->prompt = *std::move(prompt);
  job->only_reads = read->only_reads();
  job->response_fields = std::move(read->response_fields);
  job->generation = std::move(read->generation);
  GenerationFields& fields = job->generation;
  fields.client = request.client;
  job->model_name = answered_name(service, fields.model);
  return job;
}

HttpReply submit_infill(ApiService& service, std::unique_ptr<InfillJob> job, const Wake& wake) {
  const GenerationFields& fields = job->generation;
  const std::optional<int> asked = job->only_reads ? 1 : fields.max_tokens;
  const int max_tokens =
      resolve_max_tokens(service.model, static_cast<int>(job->prompt.token_ids.size()), asked);
  SamplingParams sampling = to_sampling_params(fields, service.model.defaults, {}, max_tokens);
  GroupRequest request;
  request.texts.push_back(
      to_text_request(fields, job->constraints, job->prompt.token_ids, std::move(sampling)));
  return submit_job<InfillStream, PendingInfill>(service, std::move(job), std::move(request), wake);
}

}  // namespace

HttpReply handle_infill(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, prepare_infill(service, request), wake, submit_infill);
}

}  // namespace pagoda
