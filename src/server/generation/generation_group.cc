#include "server/generation/generation_group.h"

namespace pagoda {
namespace {

// Memory for each byte: escapes, and copies while the answer is written.
constexpr std::int64_t kEchoedByteBytes = 8;

// Counts the bytes of the answer's parts that are known before anything is generated.
std::int64_t num_known_bytes(const GroupRequest& group) {
  std::int64_t num_bytes =
      group.num_echoed_bytes * kEchoedByteBytes + group.num_echoed_tokens * kAnswerTokenBytes;
  for (const TextRequest& text : group.texts) {
    const GenerationRequest& request = text.generation;
    if (const auto& num_top = request.sampling.prompt_logprobs)
      num_bytes += std::ssize(request.prompt_token_ids) * (1 + *num_top) * kAnswerLogprobBytes;
  }
  return num_bytes;
}

// Checks that the queue has room for all requests, so that all of them are queued or none.
Status check_queue(const Engine& engine, const std::vector<TextRequest>& requests) {
  QueueDemand demand = {.num_requests = 0};
  for (const TextRequest& request : requests) demand += QueueDemand::of(request.generation);
  return engine.check_room(demand);
}

}  // namespace

std::uint64_t GroupRequest::resolve_seed(Engine& engine) {
  const std::optional<std::uint64_t> asked = texts.front().generation.sampling.seed;
  const std::uint64_t seed = asked ? *asked : engine.draw_seed();
  for (TextRequest& text : texts) text.generation.sampling.seed = seed;
  return seed;
}

ApiResult<std::unique_ptr<GenerationGroup>> GenerationGroup::start(ApiService& service,
                                                                   GroupRequest request,
                                                                   const Wake& wake) {
  HeldBytes held(request.origin.held);
  if (const Status size = held.grow(num_known_bytes(request)); !size.ok())
    return api_error(size, "n");
  if (const Status room = check_queue(*service.model.engine, request.texts); !room.ok())
    return api_error(room, "prompt");
  std::unique_ptr<GenerationGroup> group(
      new GenerationGroup(service, request.origin, std::move(held)));
  for (TextRequest& text : request.texts) {
    const int num_prompt_tokens = static_cast<int>(text.generation.prompt_token_ids.size());
    group->num_samples_ = text.generation.sampling.n;
    for (int i = 0; i < group->num_samples_; ++i)
      group->choices_.push_back({.num_prompt_tokens = num_prompt_tokens});
    group->usage_.num_prompt_tokens += num_prompt_tokens;
    text.held = request.origin.held;
    text.is_held_to_the_end = !request.is_streamed;
    text.num_copies = request.num_copies;
    auto generation = TextGeneration::start(service.model, std::move(text), wake);
    if (!generation.ok()) return api_error(generation.status());
    group->generations_.push_back(*std::move(generation));
  }
  group->is_whole_ = true;
  return group;
}

std::vector<ChoicePiece> GenerationGroup::take() {
  std::vector<ChoicePiece> pieces;
  for (std::size_t i = 0; i < generations_.size(); ++i) {
    for (TextPiece& piece : generations_[i]->take()) {
      const int prompt_index = static_cast<int>(i);
      const int choice_index = prompt_index * num_samples_ + piece.sample_index;
      pieces.push_back({choice_index, prompt_index, std::move(piece)});
      account(pieces.back());
    }
  }
  return pieces;
}

void GenerationGroup::account(const ChoicePiece& choice_piece) {
  const TextPiece& piece = choice_piece.piece;
  Choice& choice = choices_[choice_piece.choice_index];
  const Clock::TimePoint now = Clock::system().now();
  if (!piece.token_ids.empty()) {
    if (choice.num_tokens == 0) {
      choice.started = piece.started;
      choice.first_token = now;
      if (piece.sample_index == 0) usage_.num_cached_tokens += piece.num_cached_tokens;
      service_.metrics.observe_first_token(seconds_between(origin_.arrival, now));
    } else {
      service_.metrics.observe_inter_token(seconds_between(choice.last_token, now));
    }
    choice.last_token = now;
    choice.num_tokens += static_cast<int>(piece.token_ids.size());
    usage_.num_completion_tokens += static_cast<int>(piece.token_ids.size());
  }
  if (piece.finish_reason != FinishReason::kNone) finish(choice, piece.finish_reason);
}

void GenerationGroup::finish(Choice& choice, FinishReason reason) {
  choice.finished = true;
  const ServerMetrics::FinishedSample sample = {
      .reason = reason,
      .latency_s = seconds_between(origin_.arrival, Clock::system().now()),
      .queue_s = seconds_between(origin_.arrival, choice.started),
      .prefill_s = seconds_between(choice.started, choice.first_token),
      .decode_s = seconds_between(choice.first_token, choice.last_token),
      .num_prompt_tokens = choice.num_prompt_tokens,
      .num_output_tokens = choice.num_tokens};
  service_.metrics.observe_finished(sample);
  if (origin_.trace) origin_.trace->add({origin_.arrival, sample});
}

GenerationGroup::~GenerationGroup() {
  // If start() refused the request, samples that it had submitted are no answers.
  if (!is_whole_) return;
  for (Choice& choice : choices_) {
    if (!choice.finished) finish(choice, FinishReason::kCancelled);
  }
}

bool GenerationGroup::finished() const {
  for (const auto& generation : generations_) {
    if (!generation->finished()) return false;
  }
  return true;
}

namespace {

// Returns the field that an error is about, if its message begins with 'NAME': ; else "".
std::string field_of(const Status& error) {
  const std::string& message = error.message();
  if (!message.starts_with('\'')) return "";
  const std::size_t end = message.find("': ");
  return end == std::string::npos ? "" : message.substr(1, end - 1);
}

}  // namespace

std::optional<ApiError> failure_of(const TextPiece& piece) {
  if (piece.finish_reason == FinishReason::kError) {
    const Status error = piece.error.ok() ? internal_error("the engine failed") : piece.error;
    return api_error(error, field_of(error));
  }
  if (piece.finish_reason == FinishReason::kCancelled) {
    return ApiError{503, "the server is shutting down", "", "service_unavailable"};
  }
  return {};
}

}  // namespace pagoda
