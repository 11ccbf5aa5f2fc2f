// ChatJob: the parts of a chat's request that are kept once it has passed every check and its
// prompt is encoded. The conversation, the tools as they were sent and the template's variables end
// with the request.
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
  bool is_thought_told = true;  // otherwise thoughts are left out of the answer
  AnswerIdentity identity;
  std::vector<int> prompt_token_ids;  // once it is submitted: where the answer tells them
  std::string echoed;                 // before every answer
  // How to take answers apart; absent: they are content as they come.
  std::optional<AnswerParserOptions> parsing;

  StreamOptions stream_options() const {
    return generation.stream_options.value_or(StreamOptions{});
  }
  std::int64_t num_kept_bytes() const;
  void drop_submitted();
};

// Makes a job of what has been read of a request, whose generation fields it takes: checks the
// model's name, renders and encodes the prompt, and resolves how answers are taken apart. The answer's
// id begins with id_prefix. Errors are encode_chat_prompt()'s and resolve_answer_form()'s.
std::optional<ApiError> prepare_chat(ApiService& service, RequestOrigin origin,
                                     ChatRequest& request, std::string_view id_prefix,
                                     ChatJob& job);

// Makes what a job with its constraints submits. Errors are resolve_max_tokens()'s.
ApiResult<GroupRequest> group_request_of(const ChatJob& job, const ServedModel& model);

// Returns why submitting a job with its constraints would be refused at any time, if it would. A
// request that asks for no answer is held to what one that does is.
std::optional<ApiError> check_chat(const ChatJob& job, const ServedModel& model);

// Submits it: start_job()'s last argument, for a Job that is a ChatJob.
template <typename Stream, typename Whole, typename Job>
HttpReply submit_chat(ApiService& service, std::unique_ptr<Job> job, const Wake& wake) {
  auto request = group_request_of(*job, service.model);
  if (!request.ok()) return {error_response(request.error()), {}};
  return submit_job<Stream, Whole>(service, std::move(job), *std::move(request), wake);
}

}  // namespace pagoda
