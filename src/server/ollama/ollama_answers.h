// The answers of /api/chat and /api/generate, whole and as lines of JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "answer/answer_content.h"
#include "core/clock.h"
#include "core/json.h"
#include "server/base/http_message.h"
#include "server/chat/chat_job.h"
#include "server/chat/single_answer.h"
#include "server/generation/token_logprobs.h"

namespace pagoda {

// Returns {"error": message}, the body of an error in Ollama's shape.
std::string ollama_error_body(const ApiError& error);

struct OllamaJob : ChatJob {
  // False: /api/generate, whose text is `response`, and whose `context` are all tokens so far.
  bool is_chat = true;
  // No prompt: the client only wants the model to be loaded, which it always is.
  bool only_loads = false;
};

// A reader of an answer that returns Ollama's objects. Thread-compatible.
class OllamaReader {
 public:
  OllamaReader(std::unique_ptr<OllamaJob> job, const ServedModel& model,
               std::unique_ptr<GenerationGroup> group);

  // Takes the parts that are ready. In a stream, appends an object to `lines` for each. A call is
  // one object, once it is whole. Returns the error if the answer failed.
  std::optional<ApiError> take(std::vector<OrderedJson>& lines);
  bool finished() const { return answer_.finished(); }

  // Returns the last object, with counts and times; unless it ends a stream, with the whole answer.
  // Call it once.
  OrderedJson last();

 private:
  bool streams() const { return job_->generation.stream; }
  void take_tokens(const TextPiece& piece);
  void take_part(const AnswerPart& part, std::vector<OrderedJson>& lines);
  void tell_call(std::vector<OrderedJson>& lines);
  void tell(const char* key, const OrderedJson& value, std::vector<OrderedJson>& lines);
  OrderedJson object() const;
  OrderedJson line_of(const char* key, const OrderedJson& value);
  OrderedJson take_logprobs();

  std::unique_ptr<OllamaJob> job_;
  TokenNaming naming_;
  SingleAnswer answer_;
  std::optional<Clock::TimePoint> first_token_;
  std::string call_name_, call_arguments_;  // of the call that is being read
  AnswerContent joiner_;
  std::string content_, thought_;  // the whole answer so far
  OrderedJson calls_ = OrderedJson::array();
  std::vector<int> token_ids_;           // of the answer; empty in a chat
  std::vector<TokenLogprobs> logprobs_;  // of the tokens that no object has yet
};

class PendingOllama : public PendingReply {
 public:
  PendingOllama(std::unique_ptr<OllamaJob> job, const ServedModel& model,
                std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), model, std::move(group)) {}

  std::optional<HttpReply> poll() override;

 private:
  OllamaReader reader_;
};

class OllamaStream : public EventStream {
 public:
  // The copies of a call's text: as it was written, as parts until it is whole, and as an object.
  static constexpr int kNumHeldCopies = 3;

  OllamaStream(std::unique_ptr<OllamaJob> job, const ServedModel& model,
               std::unique_ptr<GenerationGroup> group)
      : reader_(std::move(job), model, std::move(group)) {}

  std::string poll() override;
  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override;
  std::string_view content_type() const override { return "application/x-ndjson"; }
  std::string_view keep_alive() const override { return ""; }

 private:
  OllamaReader reader_;
  bool finished_ = false;
};

// Returns the time between two points, in Ollama's unit.
std::int64_t nanoseconds_between(Clock::TimePoint from, Clock::TimePoint to);

// Returns a time (now, if none is given) as Ollama writes it: 2026-01-31T12:00:00.000000Z.
std::string ollama_time(std::int64_t unix_ns = unix_time_ns());

}  // namespace pagoda
