// ChatJob: what is kept of a chat request that has passed every check and whose prompt is encoded.
// The conversation, the tools as they were sent and the template's variables are not kept.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "answer/answer_parser.h"
#include "core/clock.h"
#include "server/base/error_response.h"
#include "server/base/http_message.h"
#include "server/chat/chat_request.h"
#include "server/generation/answer_json.h"
#include "server/generation/api_service.h"
#include "server/generation/generation_group.h"
#include "server/generation/generation_job.h"

namespace pagoda {

struct ChatJob : GenerationJob {
  bool logprobs = false;
  int top_logprobs = 0;
  bool is_thought_told = true;    // false: thoughts are left out of the answer
  bool has_functions = false;     // the answer's call is a function_call: ToolUse::are_functions
  bool has_custom_calls = false;  // calls of custom tools have an input instead of arguments
  AnswerIdentity identity;
  std::vector<int> prompt_token_ids;  // kept after submission only if the answer repeats them
  bool repeats_prompt_ids = false;    // the answer holds prompt_token_ids
  std::string echoed;                 // text that each choice begins with
  // How answers are parsed into parts; absent: all of an answer is content.
  std::optional<AnswerParserOptions> parsing;

  // Has answers return calls only once they are whole, for APIs whose clients run every call.
  void hold_calls_back() {
    if (parsing) parsing->holds_calls_back = true;
  }
  StreamOptions stream_options() const {
    return generation.stream_options.value_or(StreamOptions{});
  }
  std::int64_t num_kept_bytes() const;
  void drop_submitted();
};

// Makes a job from a request, whose generation fields it moves: checks the model's name, renders
// and encodes the prompt, and resolves how answers are parsed. The answer's id begins with
// id_prefix. Errors are encode_chat_prompt()'s and resolve_answer_form()'s.
std::optional<ApiError> prepare_chat(ApiService& service, RequestOrigin origin,
                                     ChatRequest& request, std::string_view id_prefix,
                                     ChatJob& job);

// Makes the engine requests of a job whose constraints are made.
GroupRequest group_request_of(const ChatJob& job, const ServedModel& model);

// Returns the error with which submitting a job would always be refused, if any. It serves requests
// that ask for no answer, so that they are checked like the others.
std::optional<ApiError> check_chat(const ChatJob& job, const ServedModel& model);

// Does the same with a job that only counts its prompt's tokens. Lengths don't matter then, so the
// other fields are checked with a short prompt, which replaces the job's.
std::optional<ApiError> check_counted(ChatJob& job, const ServedModel& model);

// Submits the job. It is the last argument of start_job() for a Job derived from ChatJob.
template <typename Stream, typename Whole, typename Job>
HttpReply submit_chat(ApiService& service, std::unique_ptr<Job> job, const Wake& wake) {
  GroupRequest request = group_request_of(*job, service.model);
  return submit_job<Stream, Whole>(service, std::move(job), std::move(request), wake);
}

}  // namespace pagoda
