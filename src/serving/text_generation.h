// TextGeneration: one request's way from token ids to text: incremental decoding, stop strings,
// cancellation.
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
  // The budget that all that is generated counts in, but for `prompt_logprobs`, whose number is
  // known before. It counts until it is taken or, where that is not yet sending it, to the end.
  // Null: nothing counts.
  std::shared_ptr<MemoryAccount> held;
  bool is_held_to_the_end = false;
  int num_copies = 1;  // of all that is generated, that are held together
};

// New text of one sample; the concatenation over a sample's pieces is its answer.
struct TextPiece {
  int sample_index = 0;
  std::string text;  // whole UTF-8 characters; of a stop string all, where it is wanted, or nothing
  std::vector<int> token_ids;  // that came with it (their text may be held back for a later piece)
  std::vector<TokenLogprobs> logprobs;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<int>
      stop_token_id;  // the id that ended it; its text is in `text` only where that is wanted
  std::optional<std::string> stop_string;  // or the string that did
  int num_cached_tokens = 0;               // prompt tokens that the prefix cache had
  Status error;
  std::uint64_t logits_hash = 0;
  Clock::TimePoint started;  // when the engine began with the prompt
  Clock::TimePoint time;     // when it sent the tokens
};

// Runs detokenising and stop strings on whichever thread calls `take`, never on the engine's.
class TextGeneration {
 public:
  // Starts a generation. `on_ready` is called on the engine's thread whenever take() has something
  // new; it only wakes the caller's own thread or executor. Submits at once; errors are
  // StopStrings::create's and Engine::submit's.
  static Result<std::unique_ptr<TextGeneration>> start(ServedModel& model, TextRequest request,
                                                       std::function<void()> on_ready);
  virtual ~TextGeneration() = default;  // cancels what still runs

  // Takes the pieces that are ready; does not wait. After a stop string the sample's later tokens
  // never show.
  virtual std::vector<TextPiece> take() = 0;
  // Waits for something new and takes it, for callers with a thread of their own.
  virtual std::vector<TextPiece> wait() = 0;
  virtual bool finished() const = 0;  // every sample's last piece has been taken
  virtual void cancel() = 0;
};

}  // namespace pagoda
