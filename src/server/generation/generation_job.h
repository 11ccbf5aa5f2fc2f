// Code that generating endpoints share. A job is a request that has passed its checks, with its
// prompts encoded. Nothing else of a request is kept until its answer ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "server/base/api_error.h"
#include "server/base/error_response.h"
#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/generation_group.h"

namespace pagoda {

// The fields that all jobs have. A Job that keeps more extends these functions by its own of the
// same names.
struct GenerationJob {
  RequestOrigin origin;
  GenerationFields generation;
  Constraints constraints;
  std::optional<HeldBytes> kept;  // num_kept_bytes() in the memory budget

  std::int64_t num_kept_bytes() const {
    const std::int64_t num_rule_bytes =
        constraints.token_rules ? num_bytes(*constraints.token_rules) : 0;
    return num_bytes(generation) + num_rule_bytes;
  }
  // Drops the fields that are not needed once the job is submitted.
  void drop_submitted() {
    generation.token_rules = {};
    generation.grammar = {};
  }
};

// Makes the job's constraints, and returns the HttpReply of `start(service, job, wake)`. Both run
// on a text worker if a grammar must be compiled. A job that keeps too much memory is refused.
template <typename Job>
HttpReply start_job(ApiService& service, ApiResult<std::unique_ptr<Job>> prepared, const Wake& wake,
                    HttpReply (*start)(ApiService&, std::unique_ptr<Job>, const Wake&)) {
  if (!prepared.ok()) return {error_response(prepared.error()), {}};
  std::unique_ptr<Job> job = *std::move(prepared);
  job->kept.emplace(job->origin.held);
  if (const Status room = job->kept->resize(job->num_kept_bytes()); !room.ok())
    return {error_response(api_error(room)), {}};
  const GrammarFields& grammar = job->generation.grammar;
  auto constrain_and_start = [&service, wake, start, job = std::move(job)]() mutable -> HttpReply {
    auto constraints = make_constraints(service, job->generation);
    if (!constraints.ok()) return {error_response(constraints.error()), {}};
    job->constraints = *std::move(constraints);
    if (const Status room = job->kept->resize(job->num_kept_bytes()); !room.ok())
      return {error_response(api_error(room)), {}};
    return start(service, std::move(job), wake);
  };
  return start_constrained(service, grammar, wake, std::move(constrain_and_start));
}

// Submits the job's texts, and drops what the answer does not need. The reply is a Stream or a
// Whole, as the request asks, made of the job, the model and the group. Stream::kNumHeldCopies: how
// many copies of its text a stream keeps until its end; 0: it keeps nothing that is sent. The
// reply's header X-Seed is the `seed` that reproduces the answer.
template <typename Stream, typename Whole, typename Job>
HttpReply submit_job(ApiService& service, std::unique_ptr<Job> job, GroupRequest request,
                     const Wake& wake) {
  const bool is_stream = job->generation.stream;
  request.origin = job->origin;
  request.is_streamed = is_stream && Stream::kNumHeldCopies == 0;
  request.num_copies = std::max(1, Stream::kNumHeldCopies);
  const auto seed = static_cast<std::int64_t>(request.resolve_seed(*service.model.engine));
  auto started = GenerationGroup::start(service, std::move(request), wake);
  if (!started.ok()) return {error_response(started.error()), {}};
  auto group = *std::move(started);
  job->drop_submitted();
  if (const Status room = job->kept->resize(job->num_kept_bytes()); !room.ok())
    return {error_response(api_error(room)), {}};
  HttpHeaders headers = {{"X-Seed", std::to_string(seed)}};
  if (is_stream) {
    return {std::make_unique<Stream>(std::move(job), service.model, std::move(group)),
            std::move(headers)};
  }
  return {std::make_unique<Whole>(std::move(job), service.model, std::move(group)),
          std::move(headers)};
}

}  // namespace pagoda
