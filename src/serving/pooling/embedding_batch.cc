#include "serving/pooling/embedding_batch.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

namespace pagoda {

// A queue from the engine's thread, which pushes, to the caller's thread, which takes. The sinks
// share it, because they may outlive the batch.
class EmbeddingBatch::Results {
 public:
  // Each entry is a prompt's index and its last event.
  using List = std::vector<std::pair<std::size_t, OutputEvent>>;

  explicit Results(std::function<void()> on_ready) : on_ready_(std::move(on_ready)) {}

  // Pushes an event. Calls on_ready under the lock, so that no call is running after disconnect()
  // has returned.
  void push(std::size_t index, OutputEvent event) {
    const std::lock_guard lock(mutex_);
    list_.emplace_back(index, std::move(event));
    if (list_.size() == 1 && on_ready_) on_ready_();  // otherwise the caller has been woken already
  }

  List take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(list_, {});
  }

  void disconnect() {
    const std::lock_guard lock(mutex_);
    on_ready_ = nullptr;
  }

 private:
  std::mutex mutex_;
  List list_;
  std::function<void()> on_ready_;
};

EmbeddingBatch::EmbeddingBatch(ServedModel& model, EmbeddingBatchRequest request,
                               std::function<void()> on_ready)
    : engine_(*model.engine),
      format_(model.embedding_format),
      request_{.prompts = {},
               .dimensions = request.dimensions,
               .priority = request.priority,
               .cache_owner = std::move(request.cache_owner),
               .cache_salt = std::move(request.cache_salt),
               .on_end = std::move(request.on_end)},
      results_(std::make_shared<Results>(std::move(on_ready))) {
  prompts_.reserve(request.prompts.size());
  for (std::vector<int>& token_ids : request.prompts) {
    const int num_tokens = static_cast<int>(token_ids.size());
    num_prompt_tokens_ += num_tokens;
    prompts_.push_back({.token_ids = std::move(token_ids), .num_tokens = num_tokens});
  }
}

EmbeddingBatch::~EmbeddingBatch() {
  results_->disconnect();
  for (Prompt& prompt : prompts_) {
    if (prompt.id) engine_.cancel(*prompt.id);
    if (has_begun_ && !prompt.has_ended) end(prompt, FinishReason::kCancelled);
  }
}

Result<std::unique_ptr<EmbeddingBatch>> EmbeddingBatch::start(ServedModel& model,
                                                              EmbeddingBatchRequest request,
                                                              std::function<void()> on_ready) {
  std::unique_ptr<EmbeddingBatch> batch(
      new EmbeddingBatch(model, std::move(request), std::move(on_ready)));
  PAGODA_RETURN_IF_ERROR(batch->submit_more());
  batch->has_begun_ = true;
  return batch;
}

Result<std::vector<std::vector<float>>> EmbeddingBatch::take() {
  Status failure;
  for (auto& [index, event] : results_->take()) {
    Status status = accept(index, std::move(event));
    if (failure.ok()) failure = std::move(status);
  }
  PAGODA_RETURN_IF_ERROR(failure);
  PAGODA_RETURN_IF_ERROR(submit_more());
  std::vector<std::vector<float>> embeddings;
  while (!finished() && prompts_[num_taken_].has_ended)
    embeddings.push_back(std::exchange(prompts_[num_taken_++].embedding, {}));
  return embeddings;
}

Status EmbeddingBatch::submit_more() {
  while (num_in_flight_ < kMaxInFlight && num_submitted_ < prompts_.size()) {
    const Status status = submit(num_submitted_);
    // The queue is full. When a prompt of this batch ends, take() tries again.
    if (status.code() == StatusCode::kResourceExhausted && num_in_flight_ > 0) return ok_status();
    PAGODA_RETURN_IF_ERROR(status);
    ++num_in_flight_;
    ++num_submitted_;
  }
  return ok_status();
}

Status EmbeddingBatch::submit(std::size_t index) {
  Prompt& prompt = prompts_[index];
  GenerationRequest request = {.prompt_token_ids = prompt.token_ids,
                               .pooling = format_.pooling,
                               .priority = request_.priority,
                               .cache_owner = request_.cache_owner,
                               .cache_salt = request_.cache_salt};
  request.sampling.n = 1;
  request.sampling.max_tokens = 0;
  PAGODA_ASSIGN_OR_RETURN(
      prompt.id, engine_.submit(std::move(request), [results = results_, index](OutputEvent event) {
        results->push(index, std::move(event));
      }));
  prompt.token_ids = {};
  return ok_status();
}

Status EmbeddingBatch::accept(std::size_t index, OutputEvent event) {
  Prompt& prompt = prompts_[index];
  prompt.id.reset();
  --num_in_flight_;
  num_cached_tokens_ += event.num_cached_tokens;
  end(prompt, event.finish_reason);
  if (event.finish_reason == FinishReason::kCancelled)
    return unavailable("the server is shutting down");
  if (event.finish_reason == FinishReason::kError)
    return event.error.ok() ? internal_error("the engine failed") : event.error;
  keep(prompt, std::move(event.embedding));
  return ok_status();
}

void EmbeddingBatch::keep(Prompt& prompt, std::vector<float> embedding) const {
  const auto cut_to = [&embedding](std::optional<int> dimensions) {
    const auto num_wanted = static_cast<std::size_t>(dimensions.value_or(embedding.size()));
    if (num_wanted >= embedding.size()) return false;
    embedding.resize(num_wanted);
    return true;
  };
  const bool is_cut = cut_to(request_.dimensions);
  double squares = 0;
  for (const float number : embedding) squares += static_cast<double>(number) * number;
  if ((format_.normalizes || is_cut) && squares > 0) {
    const double length = std::sqrt(squares);
    for (float& number : embedding) number = static_cast<float>(number / length);
  }
  if (!request_.dimensions) cut_to(format_.dimensions);
  prompt.embedding = std::move(embedding);
}

void EmbeddingBatch::end(Prompt& prompt, FinishReason reason) {
  prompt.has_ended = true;
  if (request_.on_end) request_.on_end({reason, prompt.num_tokens});
}

}  // namespace pagoda
