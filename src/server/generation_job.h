// Code that the two endpoints share which generate, for a job: a request that has passed its
// checks, with its prompts encoded. A Job has `request.generation` and `constraints`.
#pragma once

#include <memory>
#include <utility>

#include "server/api_error.h"
#include "server/api_service.h"
#include "server/generation_group.h"
#include "server/http_message.h"

namespace pagoda {

// Makes the job's constraints, where a grammar is to be compiled on the text workers, and returns
// the HttpReply of `start(service, job, wake)`.
template <typename Job>
HttpReply start_job(ApiService& service, ApiResult<std::unique_ptr<Job>> prepared, const Wake& wake,
                    HttpReply (*start)(ApiService&, std::unique_ptr<Job>, const Wake&)) {
  if (!prepared.ok()) return {error_response(prepared.error()), {}};
  std::unique_ptr<Job> job = *std::move(prepared);
  const GrammarFields& grammar = job->request.generation.grammar;
  auto constrain_and_start = [&service, wake, start, job = std::move(job)]() mutable -> HttpReply {
    auto constraints = make_constraints(service, job->request.generation);
    if (!constraints.ok()) return {error_response(constraints.error()), {}};
    job->constraints = *std::move(constraints);
    return start(service, std::move(job), wake);
  };
  return start_constrained(service, grammar, wake, std::move(constrain_and_start));
}

// Submits the job's texts. The reply is a Stream or a Whole, as the request asks, made of the job,
// the model and the group. Its header X-Seed is the `seed` that gives the same answer again.
template <typename Stream, typename Whole, typename Job>
HttpReply submit_job(ApiService& service, std::unique_ptr<Job> job, GroupRequest request,
                     const Wake& wake) {
  const auto seed = static_cast<std::int64_t>(request.settle_seed(*service.model.engine));
  auto started = GenerationGroup::start(service, std::move(request), wake);
  if (!started.ok()) return {error_response(started.error()), {}};
  auto group = *std::move(started);
  HttpHeaders headers = {{"X-Seed", std::to_string(seed)}};
  if (job->request.generation.stream) {
    return {std::make_unique<Stream>(std::move(job), service.model, std::move(group)),
            std::move(headers)};
  }
  return {std::make_unique<Whole>(std::move(job), service.model, std::move(group)),
          std::move(headers)};
}

}  // namespace pagoda
