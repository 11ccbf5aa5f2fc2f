// EmbeddingBatch: the embeddings of one request's prompts. Only some of them are in the engine at a
// time, since a request may bring more than its queue holds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"
#include "serving/served_model.h"

namespace pagoda {

// How a prompt of a batch has ended.
struct EmbeddingEnd {
  FinishReason reason = FinishReason::kNone;
  int num_prompt_tokens = 0;
};

struct EmbeddingBatchRequest {
  std::vector<std::vector<int>> prompts;  // token ids
  // Leaves that many numbers of each embedding, the first ones; at least 1.
  std::optional<int> dimensions;
  int priority = 0;
  std::string cache_owner;  // GenerationRequest's, both
  std::string cache_salt;
  // Called once a prompt: in take(), or by the destructor for those that it cancels. Null: the
  // caller does not want to know.
  std::function<void(const EmbeddingEnd&)> on_end;
};

// Thread-compatible. Results come on the engine's thread, which only stores them; all else runs on
// whichever thread calls take().
class EmbeddingBatch {
 public:
  // Prompts in the engine at a time. Fewer, where its queue has no room for more.
  static constexpr int kMaxInFlight = 64;

  // Submits the first prompts. `on_ready` is called on the engine's thread whenever take() has
  // something to do; it only wakes the caller's own thread or executor. Errors are Engine::submit's
  // for the first prompt, and for a later one where that is not a full queue; then nothing has
  // begun.
  static Result<std::unique_ptr<EmbeddingBatch>> start(ServedModel& model,
                                                       EmbeddingBatchRequest request,
                                                       std::function<void()> on_ready);
  ~EmbeddingBatch();  // cancels what still runs
  EmbeddingBatch(const EmbeddingBatch&) = delete;
  EmbeddingBatch& operator=(const EmbeddingBatch&) = delete;

  // Returns the embeddings that have come since the last call, in the order of the prompts, and
  // submits further prompts. An embedding has a length of 1 where the model normalizes, or where
  // `dimensions` has cut it; what the model's own EmbeddingFormat::dimensions leaves is shorter. An error ends the batch: the engine's, Engine::submit's where nothing
  // of the batch is in the engine, and kUnavailable where the engine has cancelled a prompt.
  Result<std::vector<std::vector<float>>> take();
  // Returns whether every embedding has been taken.
  bool finished() const { return num_taken_ == prompts_.size(); }

  int num_prompt_tokens() const { return num_prompt_tokens_; }  // of all prompts
  // Returns how many of them the prefix cache had, of the prompts that have ended.
  int num_cached_tokens() const { return num_cached_tokens_; }

 private:
  class Results;
  struct Prompt {
    std::vector<int> token_ids;  // until they are submitted
    int num_tokens = 0;
    std::optional<RequestId> id;  // while it is in the engine
    bool has_ended = false;
    std::vector<float> embedding;  // from its end until it is taken
  };

  EmbeddingBatch(ServedModel& model, EmbeddingBatchRequest request, std::function<void()> on_ready);
  Status submit_more();
  Status submit(std::size_t index);
  Status accept(std::size_t index, OutputEvent event);
  void keep(Prompt& prompt, std::vector<float> embedding) const;
  void end(Prompt& prompt, FinishReason reason);

  Engine& engine_;
  const EmbeddingFormat format_;
  const EmbeddingBatchRequest request_;  // but for its prompts
  const std::shared_ptr<Results> results_;
  std::vector<Prompt> prompts_;
  std::size_t num_submitted_ = 0;
  std::size_t num_taken_ = 0;
  int num_in_flight_ = 0;
  int num_prompt_tokens_ = 0;
  int num_cached_tokens_ = 0;
  bool has_begun_ = false;
};

}  // namespace pagoda
