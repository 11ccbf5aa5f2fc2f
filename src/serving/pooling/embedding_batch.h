// EmbeddingBatch: the embeddings of one request's prompts. A request may have more prompts than the
// engine's queue can hold, so only some of them are in the engine at a time.
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
  std::vector<std::vector<int>> prompts;  // token ids of each
  // The number of leading entries of each embedding that are kept; at least 1.
  std::optional<int> dimensions;
  int priority = 0;
  std::string cache_owner;  // both as in GenerationRequest
  std::string cache_salt;
  // Called once for each prompt: by take(), or by the destructor for prompts that it cancels. May
  // be null.
  std::function<void(const EmbeddingEnd&)> on_end;
};

// Thread-compatible. The engine's thread only stores the results. All other work is done by the
// thread that calls take().
class EmbeddingBatch {
 public:
  // The most prompts in the engine at a time. There are fewer if its queue is full.
  static constexpr int kMaxInFlight = 64;

  // Submits the first prompts. `on_ready` is called on the engine's thread whenever take() has
  // something to do. It must only wake the caller's own thread or executor. Returns
  // Engine::submit's error, unless the queue is full and some prompt is already submitted. After an
  // error the batch has not begun, and on_end is not called.
  static Result<std::unique_ptr<EmbeddingBatch>> start(ServedModel& model,
                                                       EmbeddingBatchRequest request,
                                                       std::function<void()> on_ready);
  ~EmbeddingBatch();  // cancels what still runs
  EmbeddingBatch(const EmbeddingBatch&) = delete;
  EmbeddingBatch& operator=(const EmbeddingBatch&) = delete;

  // Returns the embeddings that have become ready since the last call, in the order of the prompts,
  // and submits further prompts. An embedding has length 1 if the model normalizes or `dimensions`
  // has shortened it. A cut by the model's own EmbeddingFormat::dimensions is not normalized again.
  // An error ends the batch: the engine's; Engine::submit's if no prompt of the batch is in the
  // engine; or kUnavailable if the engine has cancelled a prompt.
  Result<std::vector<std::vector<float>>> take();
  // Returns whether every embedding has been taken.
  bool finished() const { return num_taken_ == prompts_.size(); }

  int num_prompt_tokens() const { return num_prompt_tokens_; }  // of all prompts
  // Returns how many tokens the prefix cache had, for all prompts that have ended.
  int num_cached_tokens() const { return num_cached_tokens_; }

 private:
  class Results;
  struct Prompt {
    std::vector<int> token_ids;  // until they are submitted
    int num_tokens = 0;
    std::optional<RequestId> id;  // while it is in the engine
    bool has_ended = false;
    std::vector<float> embedding;  // from the prompt's end until it is taken
  };

  EmbeddingBatch(ServedModel& model, EmbeddingBatchRequest request, std::function<void()> on_ready);
  Status submit_more();
  Status submit(std::size_t index);
  Status accept(std::size_t index, OutputEvent event);
  void keep(Prompt& prompt, std::vector<float> embedding) const;
  void end(Prompt& prompt, FinishReason reason);

  Engine& engine_;
  const EmbeddingFormat format_;
  const EmbeddingBatchRequest request_;  // without its prompts
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
