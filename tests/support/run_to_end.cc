#include "tests/support/run_to_end.h"

#include <condition_variable>
#include <iterator>
#include <mutex>

#include "tests/support/eventually.h"

namespace pagoda {

namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void add_event(OutputEvent event, WholeAnswer& answer) {
  append(answer.token_ids, event.token_ids);
  append(answer.logprobs, event.logprobs);
  append(answer.prompt_logprobs, event.prompt_logprobs);
  append(answer.embedding, event.embedding);
  if (event.finish_reason == FinishReason::kNone) return;
  answer.finish_reason = event.finish_reason;
  answer.error = event.error;
  answer.logits_hash = event.logits_hash;
}

void ask_for_embedding(Pooling pooling, GenerationRequest& request) {
  request.pooling = pooling;
  request.sampling = {.max_tokens = 0};
}

std::vector<WholeAnswer> run_to_end(Engine& engine,
                                    const std::vector<GenerationRequest>& requests) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t num_finished = 0;
  std::vector<std::size_t> first_answer;
  std::size_t num_answers = 0;
  for (const GenerationRequest& request : requests) {
    first_answer.push_back(num_answers);
    num_answers += static_cast<std::size_t>(request.sampling.n);
  }
  std::vector<WholeAnswer> answers(num_answers);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto sink = [&, first = first_answer[i]](OutputEvent event) {
      const std::lock_guard lock(mutex);
      num_finished += event.finish_reason != FinishReason::kNone;
      WholeAnswer& answer = answers[first + event.sample_index];
      add_event(std::move(event), answer);
      changed.notify_one();
    };
    const Result<RequestId> id = engine.submit(requests[i], sink);
    if (id.ok()) continue;
    const std::lock_guard lock(mutex);
    for (int sample = 0; sample < requests[i].sampling.n; ++sample) {
      answers[first_answer[i] + sample] = {.finish_reason = FinishReason::kError,
                                           .error = id.status()};
      ++num_finished;
    }
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return num_finished == num_answers; });
  return answers;
}

WholeAnswer run_to_end(Engine& engine, const GenerationRequest& request) {
  return run_to_end(engine, std::vector{request}).front();
}

EngineStats stats_at_rest(const Engine& engine) {
  EngineStats stats;
  eventually([&] {
    stats = engine.stats();
    return stats.num_running + stats.num_waiting == 0;
  });
  return stats;
}

}  // namespace pagoda
