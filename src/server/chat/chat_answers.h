// The answers of /v1/chat/completions, whole and streamed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "server/base/http_message.h"
#include "server/chat/chat_job.h"
#include "server/generation/generation_group.h"
#include "server/generation/token_logprobs.h"
#include "serving/answer_reader.h"
#include "serving/served_model.h"

namespace pagoda {

// Takes one choice's pieces apart, and leaves out thoughts that the job does not tell.
class ChoiceReader {
 public:
  explicit ChoiceReader(const ChatJob& job)
      : reader_(job.parsing), is_thought_told_(job.is_thought_told) {}

  // Returns the parts that a piece brings; the last piece ends the answer.
  std::vector<AnswerPart> parts_of(const TextPiece& piece);
  // Returns what OpenAI calls the end: tool_calls where calls end an answer.
  nlohmann::json finish_reason(FinishReason reason) const;
  bool has_calls() const { return reader_.has_calls(); }

 private:
  AnswerReader reader_;
  bool is_thought_told_;
};

// Waits for all choices, and answers them as one JSON object.
class PendingChat : public PendingReply {
 public:
  PendingChat(std::unique_ptr<ChatJob> job, const ServedModel& model,
              std::unique_ptr<GenerationGroup> group);

  std::optional<HttpReply> poll() override;

 private:
  struct Call {
    std::string id, name, arguments;
  };
  struct Choice {
    ChoiceReader reader;
    std::string content, thought;
    std::vector<Call> calls;
    std::vector<int> token_ids;
    std::vector<TokenLogprobs> logprobs;
    FinishReason finish_reason = FinishReason::kNone;
    nlohmann::json stop_reason;
  };

  void append(Choice& choice, TextPiece piece);
  void append_part(Choice& choice, AnswerPart part) const;
  nlohmann::json message_json(const Choice& choice) const;
  nlohmann::json choice_json(int index, const Choice& choice) const;
  nlohmann::json body() const;

  std::unique_ptr<ChatJob> job_;
  const ServedModel& model_;
  TokenNaming naming_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<Choice> choices_;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs_;
};

class ChatStream : public EventStream {
 public:
  static constexpr int kNumHeldCopies = 0;

  ChatStream(std::unique_ptr<ChatJob> job, const ServedModel& model,
             std::unique_ptr<GenerationGroup> group);

  std::string poll() override;
  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override;

 private:
  struct Choice {
    ChoiceReader reader;
    bool has_role = false;
    int num_calls = 0;
  };

  std::string role_event(int index);
  std::string piece_events(const ChoicePiece& choice_piece);
  nlohmann::json delta_of(Choice& choice, AnswerPart part) const;
  std::string usage_event() const;
  nlohmann::json make_chunk(nlohmann::json choice) const;

  std::unique_ptr<ChatJob> job_;
  const ServedModel& model_;
  TokenNaming naming_;
  std::unique_ptr<GenerationGroup> group_;
  std::vector<Choice> choices_;
  bool has_begun_ = false;
  bool finished_ = false;
};

}  // namespace pagoda
