// TextGeneration: turns one request's token ids into text: incremental detokenization, stop
// strings, cancellation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"
#include "serving/request_memory.h"
#include "serving/served_model.h"

namespace pagoda {

struct TextRequest {
  GenerationRequest generation;
  std::vector<std::string> stop;  // stop strings
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  // The account for all generated tokens, but not for `prompt_logprobs`, whose number is known
  // before. Tokens are counted until they are taken, or, with is_held_to_the_end, until the
  // generation ends. Null: nothing is counted.
  std::shared_ptr<MemoryAccount> held;
  bool is_held_to_the_end = false;
  int num_copies = 1;  // how many copies of the generated tokens are held; all are counted
};

// New text of one sample. The concatenation of a sample's pieces is its answer.
struct TextPiece {
  int sample_index = 0;
  std::string text;  // whole UTF-8 characters; includes the stop string only if that is asked for
  std::vector<int> token_ids;  // the piece's tokens; their text may be held back for a later piece
  std::vector<TokenLogprobs> logprobs;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  // The token that ended the sample. Its text is included only if that is asked for.
  std::optional<int> stop_token_id;
  std::optional<std::string> stop_string;  // the stop string that ended the sample
  int num_cached_tokens = 0;               // prompt tokens from the prefix cache
  Status error;
  std::uint64_t logits_hash = 0;
  Clock::TimePoint started;  // when the engine began to process the prompt
  Clock::TimePoint time;     // when the engine sent the tokens
};

// Detokenizes and finds stop strings on the thread that calls `take`, never on the engine's.
class TextGeneration {
 public:
  // Starts a generation and submits its request. `on_ready` is called on the engine's thread
  // whenever take() has something new. It must only wake the caller's own thread or executor.
  // Errors are those of StopStrings::create and Engine::submit.
  static Result<std::unique_ptr<TextGeneration>> start(ServedModel& model, TextRequest request,
                                                       std::function<void()> on_ready);
  virtual ~TextGeneration() = default;  // cancels what still runs

  // Takes the pieces that are ready, without waiting. Tokens of a sample after its stop string are
  // dropped.
  virtual std::vector<TextPiece> take() = 0;
  // Waits for new pieces and takes them. For callers with a thread of their own.
  virtual std::vector<TextPiece> wait() = 0;
  virtual bool finished() const = 0;  // all samples' last pieces have been taken
  virtual void cancel() = 0;
};

}  // namespace pagoda
