// SingleAnswer: the answer of a chat with one choice, as parts, for APIs that write answers in
// shapes of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "server/chat/chat_answers.h"
#include "server/chat/chat_job.h"
#include "server/generation/generation_group.h"

namespace pagoda {

// Thread-compatible. `job` must outlive it.
class SingleAnswer {
 public:
  SingleAnswer(const ChatJob& job, std::unique_ptr<GenerationGroup> group)
      : group_(std::move(group)), reader_(job) {}

  // Takes the pieces that are ready. Calls on_piece for each, then on_part for each of its parts,
  // with the piece. The piece's tokens belong to its first part; a piece whose text is held back
  // has no part. Returns the error if the answer failed.
  std::optional<ApiError> take(
      const std::function<void(const AnswerPart&, const TextPiece&)>& on_part,
      const std::function<void(const TextPiece&)>& on_piece = [](const TextPiece&) {});

  bool finished() const { return group_->finished(); }
  const Usage& usage() const { return group_->usage(); }
  bool is_cut_off() const { return last_.finish_reason == FinishReason::kLength; }
  bool has_calls() const { return reader_.has_calls(); }
  const CustomCalls& custom_calls() const { return reader_.custom_calls(); }
  // Returns the stop string that ended the answer, if one did.
  const std::optional<std::string>& stop_string() const { return last_.stop_string; }
  int num_thought_tokens() const { return reader_.num_thought_tokens(); }

 private:
  std::unique_ptr<GenerationGroup> group_;
  ChoiceReader reader_;
  TextPiece last_;
};

}  // namespace pagoda
