// GenerationGroup: the generations of one HTTP request, one a prompt, as one queue of pieces with
// their choice's index.
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

// Tokens so far.
struct Usage {
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  int num_cached_tokens = 0;  // prompt tokens that the prefix cache had
};

struct GroupRequest {
  // Gives every text the seed that the first one has, or one that the engine draws, and returns it.
  std::uint64_t resolve_seed(Engine& engine);

  std::vector<TextRequest> texts;  // one a prompt, all with the same `n`
  // The bytes of the prompts, as often as the answer's choices repeat them.
  std::int64_t num_echoed_bytes = 0;
  std::int64_t num_echoed_tokens = 0;
  bool is_streamed = false;  // its pieces need not be held once they are taken
  int num_copies = 1;        // of them, that are held together
  RequestOrigin origin;      // from whose arrival the metrics count
};

// Thread-compatible. Its end cancels what still runs, and counts it as aborted.
class GenerationGroup {
 public:
  ~GenerationGroup();

  // Submits the texts of a request. No text is submitted where not all have room in the queue. An
  // error of any submission cancels those before it. Refused, or ended by an error, where the
  // answer takes too much memory.
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
    Clock::TimePoint started, first_token, last_token;  // once num_tokens > 0
  };

  GenerationGroup(ApiService& service, RequestOrigin origin, HeldBytes held)
      : service_(service), origin_(std::move(origin)), held_(std::move(held)) {}
  void account(const ChoicePiece& piece);
  void finish(Choice& choice, FinishReason reason);

  ApiService& service_;
  const RequestOrigin origin_;
  HeldBytes held_;         // of the answer's parts that are there before anything is generated
  int num_samples_ = 1;    // a prompt
  bool is_whole_ = false;  // every prompt has been submitted
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<TextGeneration>> generations_;
  Usage usage_;
};

// Returns why an answer ended that the client can not use, if it did: the engine failed, or was
// stopped.
std::optional<ApiError> failure_of(const TextPiece& piece);

}  // namespace pagoda
