#include "server/openai/chat_completions.h"

#include "server/chat/chat_answers.h"
#include "server/chat/chat_job.h"

namespace pagoda {
namespace {

ApiResult<std::unique_ptr<ChatJob>> read_job(ApiService& service, const HttpRequest& request) {
  auto read = read_logged(service, read_chat_request, request.body);
  if (!read.ok()) return std::move(read).error();
  auto job = std::make_unique<ChatJob>();
  job->has_custom_calls = true;
  if (auto error = prepare_chat(service, request.origin(), *read, "chatcmpl-", *job))
    return std::move(*error);
  return job;
}

}  // namespace

HttpReply handle_chat_completions(ApiService& service, const HttpRequest& request,
                                  const Wake& wake) {
  return start_job(service, read_job(service, request), wake,
                   submit_chat<ChatStream, PendingChat, ChatJob>);
}

}  // namespace pagoda
