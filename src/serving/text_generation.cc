#include "serving/text_generation.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace pagoda {
namespace {

std::int64_t num_answer_bytes(const OutputEvent& event) {
  std::int64_t num_logprobs = 0;
  for (const TokenLogprobs& logprobs : event.logprobs) num_logprobs += 1 + std::ssize(logprobs.top);
  return std::ssize(event.token_ids) * kAnswerTokenBytes + num_logprobs * kAnswerLogprobBytes;
}

// A queue from the engine's thread, which pushes, to the caller's thread, which takes. The sink
// shares it, because it may outlive the generation.
class EventQueue {
 public:
  EventQueue(const TextRequest& request, std::function<void()> on_ready)
      : is_held_to_the_end_(request.is_held_to_the_end),
        num_copies_(request.num_copies),
        on_ready_(std::move(on_ready)) {
    if (request.held) held_.emplace(request.held);
  }

  // Pushes an event. Calls on_ready under the lock, so that no call is running after disconnect()
  // has returned. If the answer gets too large, the event is replaced by that error.
  void push(OutputEvent event) {
    std::lock_guard lock(mutex_);
    if (has_failed_) return;
    const std::int64_t num_bytes = num_copies_ * num_answer_bytes(event);
    if (const Status status = held_ ? held_->grow(num_bytes) : ok_status(); status.ok()) {
      num_waiting_bytes_ += num_bytes;
    } else {
      has_failed_ = true;
      event = {.sample_index = event.sample_index,
               .finish_reason = FinishReason::kError,
               .error = status,
               .time = event.time};
    }
    events_.push_back(std::move(event));
    if (events_.size() > 1) return;  // otherwise the caller has been woken already
    not_empty_.notify_one();
    if (on_ready_) on_ready_();
  }

  std::vector<OutputEvent> take() {
    std::lock_guard lock(mutex_);
    return take_events();
  }

  std::vector<OutputEvent> wait() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !events_.empty(); });
    return take_events();
  }

  void disconnect() {
    std::lock_guard lock(mutex_);
    on_ready_ = nullptr;
  }

 private:
  std::vector<OutputEvent> take_events() {
    if (held_ && !is_held_to_the_end_) held_->release(std::exchange(num_waiting_bytes_, 0));
    return std::exchange(events_, {});
  }

  std::optional<HeldBytes> held_;  // for the generated tokens; absent: nothing is counted
  const bool is_held_to_the_end_;
  const int num_copies_;
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::vector<OutputEvent> events_;
  std::int64_t num_waiting_bytes_ = 0;  // bytes of events_ in held_
  bool has_failed_ = false;
  std::function<void()> on_ready_;
};

struct Sample {
  Sample(const ServedModel& model, const TextRequest& request, const StopStrings* stop_strings)
      : matcher(stop_strings, /*include_stop=*/true) {
    if (model.tokenizer) {
      detokenizer.emplace(model.tokenizer,
                          DetokenizerOptions{.skip_special_tokens = request.skip_special_tokens,
                                             .continues_text = true});
    }
  }

  // Returns a token's text; empty if the model has no tokenizer.
  std::string text_of(int token_id) {
    return detokenizer ? detokenizer->push(token_id) : std::string();
  }
  std::string last_text() { return detokenizer ? detokenizer->finish() : std::string(); }

  std::optional<Detokenizer> detokenizer;
  // Keeps the stop string in the text, because push_text() finds from it which string matched.
  StopStringMatcher matcher;
  int num_tokens = 0;
  bool finished = false;
};

class EngineTextGeneration : public TextGeneration {
 public:
  EngineTextGeneration(ServedModel& model, TextRequest request, StopStrings stop_strings,
                       std::function<void()> on_ready)
      : engine_(*model.engine),
        stop_(std::move(request.stop)),
        include_stop_(request.include_stop_str_in_output),
        min_tokens_(request.generation.sampling.min_tokens),
        stop_strings_(std::move(stop_strings)),
        queue_(std::make_shared<EventQueue>(request, std::move(on_ready))) {
    const int num_samples = request.generation.sampling.n;
    num_running_ = num_samples;
    samples_.reserve(num_samples);
    for (int i = 0; i < num_samples; ++i) samples_.emplace_back(model, request, &stop_strings_);
  }

  ~EngineTextGeneration() override {
    queue_->disconnect();
    cancel();
  }

  Status submit(GenerationRequest request) {
    auto id = engine_.submit(
        std::move(request), [queue = queue_](OutputEvent event) { queue->push(std::move(event)); });
    if (!id.ok()) return id.status();
    id_ = *id;
    return ok_status();
  }

  std::vector<TextPiece> take() override { return to_pieces(queue_->take()); }

  // Waits for pieces. An event gives no piece if a stop string has already ended its sample.
  std::vector<TextPiece> wait() override {
    std::vector<TextPiece> pieces;
    while (pieces.empty() && !finished()) pieces = to_pieces(queue_->wait());
    return pieces;
  }

  bool finished() const override { return num_running_ == 0; }

  void cancel() override {
    if (id_) engine_.cancel(*id_);
  }

 private:
  std::vector<TextPiece> to_pieces(std::vector<OutputEvent> events) {
    std::vector<TextPiece> pieces;
    for (OutputEvent& event : events) {
      if (samples_[event.sample_index].finished) continue;
      pieces.push_back(to_piece(std::move(event)));
    }
    return pieces;
  }

  TextPiece to_piece(OutputEvent event) {
    Sample& sample = samples_[event.sample_index];
    TextPiece piece;
    piece.sample_index = event.sample_index;
    piece.prompt_logprobs = std::move(event.prompt_logprobs);
    piece.num_cached_tokens = event.num_cached_tokens;
    piece.logits_hash = event.logits_hash;
    piece.started = event.started;
    piece.time = event.time;
    for (std::size_t i = 0; i < event.token_ids.size(); ++i) {
      const bool is_stop_token = event.stop_token_id.has_value() && i + 1 == event.token_ids.size();
      piece.token_ids.push_back(event.token_ids[i]);
      if (i < event.logprobs.size()) piece.logprobs.push_back(std::move(event.logprobs[i]));
      ++sample.num_tokens;
      if (is_stop_token && !include_stop_) continue;
      if (push_text(sample, sample.text_of(event.token_ids[i]), piece)) {
        if (event.finish_reason == FinishReason::kNone)
          engine_.cancel_sample(*id_, event.sample_index);
        return piece;
      }
    }
    if (event.finish_reason != FinishReason::kNone) end(sample, std::move(event), piece);
    return piece;
  }

  // Returns true if a stop string has occurred, which ends the sample.
  bool push_text(Sample& sample, const std::string& text, TextPiece& piece) {
    // Before min_tokens nothing stops the text. As in vLLM, that text cannot be part of a later
    // stop string either.
    if (sample.num_tokens <= min_tokens_) {
      piece.text += text;
      return false;
    }
    StopStringMatcher::Output output = sample.matcher.push(text);
    if (output.stopped) {
      piece.stop_string = longest_stop_at_end(output.text);
      if (!include_stop_) output.text.resize(output.text.size() - piece.stop_string->size());
      piece.finish_reason = FinishReason::kStop;
      sample.finished = true;
      --num_running_;
    }
    piece.text += output.text;
    return output.stopped;
  }

  void end(Sample& sample, OutputEvent event, TextPiece& piece) {
    if (push_text(sample, sample.last_text(), piece)) return;
    piece.text += sample.matcher.flush();
    piece.finish_reason = event.finish_reason;
    piece.stop_token_id = event.stop_token_id;
    piece.error = std::move(event.error);
    sample.finished = true;
    --num_running_;
  }

  std::string longest_stop_at_end(std::string_view text) const {
    std::string_view longest;
    for (const std::string& stop : stop_) {
      if (stop.size() > longest.size() && text.ends_with(stop)) longest = stop;
    }
    return std::string(longest);
  }

  Engine& engine_;
  const std::vector<std::string> stop_;
  const bool include_stop_;
  const int min_tokens_;
  const StopStrings stop_strings_;
  std::shared_ptr<EventQueue> queue_;
  std::optional<RequestId> id_;
  std::vector<Sample> samples_;
  int num_running_ = 0;
};

}  // namespace

Result<std::unique_ptr<TextGeneration>> TextGeneration::start(ServedModel& model,
                                                              TextRequest request,
                                                              std::function<void()> on_ready) {
  // The engine checks n too, but only after n samples have been allocated here.
  const SamplingParams& sampling = request.generation.sampling;
  if (sampling.n < 1 || sampling.n > kMaxSamples) {
    return invalid_argument("n: expected 1 to {}, got {}", kMaxSamples, sampling.n);
  }
  PAGODA_ASSIGN_OR_RETURN(StopStrings stop_strings, StopStrings::create(request.stop));
  GenerationRequest generation_request = std::move(request.generation);
  request.generation.sampling = generation_request.sampling;
  auto generation = std::make_unique<EngineTextGeneration>(
      model, std::move(request), std::move(stop_strings), std::move(on_ready));
  PAGODA_RETURN_IF_ERROR(generation->submit(std::move(generation_request)));
  return std::unique_ptr<TextGeneration>(std::move(generation));
}

}  // namespace pagoda
