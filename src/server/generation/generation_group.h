// GenerationGroup: the generations of one HTTP request, one per prompt, as one queue of pieces.
// Each piece has the index of its choice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "server/base/api_error.h"
#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/request_trace.h"
#include "serving/text_generation.h"

namespace pagoda {

struct ChoicePiece {
  int choice_index = 0;  // prompt_index * n + sample_index
  int prompt_index = 0;
  TextPiece piece;
};

// Numbers of tokens so far.
struct Usage {
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  int num_cached_tokens = 0;  // prompt tokens found in the prefix cache
};

struct GroupRequest {
  // Gives all texts one seed and returns it: the first text's, or else one that the engine draws.
  std::uint64_t resolve_seed(Engine& engine);

  std::vector<TextRequest> texts;  // one per prompt, all with the same `n`
  // The bytes of the prompts that the answer repeats, counted for each of its choices.
  std::int64_t num_echoed_bytes = 0;
  std::int64_t num_echoed_tokens = 0;
  bool is_streamed = false;  // pieces need not be kept once they are taken
  int num_copies = 1;        // copies of the pieces that are kept at a time
  RequestOrigin origin;      // the metrics count from origin.arrival
};

// Thread-compatible. The destructor cancels what still runs, and counts it as aborted.
class GenerationGroup {
 public:
  ~GenerationGroup();

  // Submits the texts of a request, or none of them if the queue lacks room for all. If one
  // submission fails, the earlier ones are cancelled. An answer that takes too much memory is
  // refused, or ended by an error.
  static ApiResult<std::unique_ptr<GenerationGroup>> start(ApiService& service,
                                                           GroupRequest request, const Wake& wake);

  std::vector<ChoicePiece> take();
  bool finished() const;
  int num_choices() const { return static_cast<int>(choices_.size()); }
  const Usage& usage() const { return usage_; }

 private:
  struct Choice {
    int num_prompt_tokens = 0;
    int num_tokens = 0;
    bool finished = false;
    Clock::TimePoint started, first_token, last_token;  // valid if num_tokens > 0
  };

  GenerationGroup(ApiService& service, RequestOrigin origin, HeldBytes held)
      : service_(service), origin_(std::move(origin)), held_(std::move(held)) {}
  void account(const ChoicePiece& piece);
  void finish(Choice& choice, FinishReason reason);

  ApiService& service_;
  const RequestOrigin origin_;
  // For the answer's parts that are known before anything is generated.
  HeldBytes held_;
  int num_samples_ = 1;    // per prompt
  bool is_whole_ = false;  // every prompt has been submitted
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<TextGeneration>> generations_;
  Usage usage_;
};

// Returns the error that ended an answer, if it makes the answer useless to the client: the engine
// failed or was stopped.
std::optional<ApiError> failure_of(const TextPiece& piece);

}  // namespace pagoda
