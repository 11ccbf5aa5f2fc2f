// The answers of /v1/chat/completions, whole and streamed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/answer_content.h"
#include "core/json.h"
#include "server/base/http_message.h"
#include "server/chat/chat_job.h"
#include "server/chat/custom_calls.h"
#include "server/generation/generation_group.h"
#include "server/generation/token_logprobs.h"
#include "serving/answer_reader.h"
#include "serving/served_model.h"

namespace pagoda {

// A reader that splits one choice's pieces into parts. Thoughts are left out unless the job tells
// them.
class ChoiceReader {
 public:
  explicit ChoiceReader(const ChatJob& job)
      : reader_(job.parsing),
        custom_calls_(job.has_custom_calls && job.parsing ? job.parsing->tools : nullptr),
        is_thought_told_(job.is_thought_told),
        has_functions_(job.has_functions) {}

  // Returns the parts that the next piece yields. The last piece yields all that remain. The
  // arguments of a custom tool are its input.
  std::vector<AnswerPart> parts_of(const TextPiece& piece);
  // Returns OpenAI's finish_reason: tool_calls if an answer stops after calls that are all whole.
  nlohmann::json finish_reason(FinishReason reason) const;
  bool has_calls() const { return reader_.has_calls(); }
  const CustomCalls& custom_calls() const { return custom_calls_; }
  // Returns the number of tokens of thoughts so far, told or not.
  int num_thought_tokens() const { return num_thought_tokens_; }

 private:
  AnswerReader reader_;
  CustomCalls custom_calls_;
  bool is_thought_told_;
  bool has_functions_;
  int num_thought_tokens_ = 0;
};

// A reply that waits for all choices and holds them in one JSON object.
class PendingChat : public PendingReply {
 public:
  PendingChat(std::unique_ptr<ChatJob> job, const ServedModel& model,
              std::unique_ptr<GenerationGroup> group);

  std::optional<HttpReply> poll() override;

 private:
  struct Call {
    std::string id, name;
    std::string arguments;  // or a custom tool's input
    bool is_custom = false;
  };
  struct Choice {
    ChoiceReader reader;
    AnswerContent joiner;
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
    AnswerContent joiner;
    bool has_role = false;
    int num_calls = 0;
    bool has_custom_call = false;  // the latest call is one of a custom tool
  };

  std::string role_event(int index);
  std::string piece_events(const ChoicePiece& choice_piece);
  nlohmann::json delta_of(Choice& choice, AnswerPart part) const;
  nlohmann::json call_delta(const Choice& choice, nlohmann::json call) const;
  std::string usage_event() const;
  nlohmann::json usage() const;
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
