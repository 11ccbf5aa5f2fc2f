#include "cli/commands/timed_generation.h"

#include <condition_variable>
#include <iterator>
#include <mutex>

namespace pagoda {

namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Adds a piece to the answer; the piece with the first token ends the prefill.
Status add_piece(TextPiece& piece, Clock::TimePoint start, TimedAnswer& answer) {
  if (!piece.error.ok()) return piece.error;
  const double elapsed = seconds_between(start, piece.time);
  if (answer.token_ids.empty()) answer.prefill_s = elapsed;
  answer.decode_s = elapsed - answer.prefill_s;
  append(answer.token_ids, piece.token_ids);
  append(answer.logprobs, piece.logprobs);
  append(answer.prompt_logprobs, piece.prompt_logprobs);
  answer.text += piece.text;
  if (piece.finish_reason != FinishReason::kNone) {
    answer.finish_reason = piece.finish_reason;
    answer.logits_hash = piece.logits_hash;
  }
  return ok_status();
}

}  // namespace

Result<TimedAnswer> collect(TextGeneration& generation, Clock::TimePoint start,
                            const std::function<void(const TextPiece&)>& on_piece) {
  TimedAnswer answer;
  while (!generation.finished()) {
    for (TextPiece& piece : generation.wait()) {
      PAGODA_RETURN_IF_ERROR(add_piece(piece, start, answer));
      if (on_piece) on_piece(piece);
    }
  }
  return answer;
}

Result<std::vector<TimedAnswer>> generate_together(ServedModel& model,
                                                   const std::vector<TextRequest>& requests) {
  std::mutex mutex;
  std::condition_variable ready;
  bool something_new = false;
  const auto wake = [&] {
    const std::lock_guard lock(mutex);
    something_new = true;
    ready.notify_one();
  };
  const Clock::TimePoint start = Clock::system().now();
  std::vector<std::unique_ptr<TextGeneration>> generations;
  for (const TextRequest& request : requests) {
    PAGODA_ASSIGN_OR_RETURN(auto generation, TextGeneration::start(model, request, wake));
    generations.push_back(std::move(generation));
  }
  std::vector<TimedAnswer> answers(requests.size());
  for (std::size_t num_finished = 0; num_finished < generations.size();) {
    {
      std::unique_lock lock(mutex);
      ready.wait(lock, [&] { return something_new; });
      something_new = false;
    }
    num_finished = 0;
    for (std::size_t i = 0; i < generations.size(); ++i) {
      for (TextPiece& piece : generations[i]->take())
        PAGODA_RETURN_IF_ERROR(add_piece(piece, start, answers[i]));
      num_finished += generations[i]->finished();
    }
  }
  return answers;
}

}  // namespace pagoda
