#include "server/pooling/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"
#include "server/pooling/embedding_answer.h"
#include "server/pooling/score_request.h"
#include "serving/cut_prompt.h"
#include "serving/pooling/embedding_batch.h"
#include "serving/pooling/pooling_prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr std::int64_t kResultBytes = 160;  // text of the answer around a score
// Per byte of a document: escapes, and copies while written.
constexpr std::int64_t kReturnedByteBytes = 12;

struct ScoreJob {
  EmbeddingBatchRequest batch;
  RequestOrigin origin;
  std::int64_t num_returned_bytes = 0;  // bytes of the texts that the answer repeats
  // Writes the answer, once all scores are there.
  std::function<json(const std::vector<double>& scores, const json& usage)> write;
};

class PendingScores : public PendingReply {
 public:
  PendingScores(const ScoreFormat& format, std::unique_ptr<EmbeddingBatch> batch, HeldBytes held,
                ScoreJob job)
      : format_(format), batch_(std::move(batch)), held_(std::move(held)), job_(std::move(job)) {}

  std::optional<HttpReply> poll() override {
    const auto ends = batch_->take();
    if (!ends.ok()) return HttpReply{error_response(api_error(ends.status())), {}};
    for (const std::vector<float>& last_hidden : *ends)
      scores_.push_back(format_.score(last_hidden));
    if (!batch_->finished()) return {};
    return HttpReply{json_response(job_.write(scores_, usage_json(*batch_))), {}};
  }

 private:
  const ScoreFormat& format_;
  std::unique_ptr<EmbeddingBatch> batch_;
  const HeldBytes held_;
  const ScoreJob job_;
  std::vector<double> scores_;
};

std::optional<ApiError> check_scores(const ApiService& service, const std::string& model_name) {
  if (auto error = check_model_name(service, model_name)) return error;
  if (service.model.score_format) return {};
  return bad_request("model", "this model has no head for scores", "no_scores");
}

// Encodes pairs of texts: of both lists one by one, or of a single first text with all `seconds`.
ApiResult<EmbeddingBatchRequest> batch_of_pairs(const ApiService& service,
                                                const HttpRequest& http_request,
                                                ScoredTexts& common,
                                                const std::vector<std::string>& firsts,
                                                const std::vector<std::string>& seconds,
                                                std::string_view param) {
  auto most = resolve_cut(service.model, common.truncate_prompt_tokens);
  if (!most.ok()) return api_error(most.status());
  EmbeddingBatchRequest batch = {.prompts = {},
                                 .dimensions = {},
                                 .priority = common.priority,
                                 .cache_owner = http_request.client,
                                 .cache_salt = std::move(common.cache_salt),
                                 .on_end = {}};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const std::string& first = firsts[firsts.size() == 1 ? 0 : i];
    auto ids = encode_pair(service.model, {first, seconds[i]}, *most, param);
    if (!ids.ok()) return api_error(ids.status());
    batch.prompts.push_back(*std::move(ids));
  }
  return batch;
}

HttpReply start_scores(ApiService& service, ScoreJob job, const Wake& wake) {
  HeldBytes held(job.origin.held);
  // Hidden states wait in memory until all earlier pairs are scored, and become scores then.
  const std::int64_t pair_bytes =
      kResultBytes + std::int64_t{service.model.config.hidden_size} * std::int64_t{sizeof(float)};
  const std::int64_t num_bytes = std::ssize(job.batch.prompts) * pair_bytes +
                                 job.num_returned_bytes * kReturnedByteBytes +
                                 num_prompt_bytes(job.batch);
  if (const Status size = held.grow(num_bytes); !size.ok())
    return {error_response(api_error(size, "documents")), {}};
  job.batch.on_end = observer_of_embeddings(service, job.origin);
  auto batch = EmbeddingBatch::start(service.model, std::move(job.batch), wake);
  if (!batch.ok()) return {error_response(api_error(batch.status(), "documents")), {}};
  return {std::make_unique<PendingScores>(*service.model.score_format, *std::move(batch),
                                          std::move(held), std::move(job)),
          {}};
}

// Returns the results with the best score first. Of equal scores, the earlier one is first.
// `documents`: those that the answer repeats; empty, or one for each score.
json ranked(const std::vector<double>& scores, std::optional<int> top_n,
            const std::vector<std::string>& documents) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const auto most = static_cast<std::size_t>(top_n.value_or(0));
  if (most > 0 && most < order.size()) order.resize(most);
  json results = json::array();
  for (const std::size_t index : order) {
    json result = {{"index", index}, {"relevance_score", scores[index]}};
    if (!documents.empty()) result["document"] = {{"text", documents[index]}};
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

HttpReply handle_score(ApiService& service, const HttpRequest& http_request, const Wake& wake) {
  auto read = read_logged(service, read_score_request, http_request.body);
  if (!read.ok()) return {error_response(read.error()), {}};
  ScoredTexts& common = read->common;
  if (auto error = check_scores(service, common.model)) return {error_response(*error), {}};
  auto batch = batch_of_pairs(service, http_request, common, read->firsts, read->seconds, "text_2");
  if (!batch.ok()) return {error_response(batch.error()), {}};
  const auto identity = AnswerIdentity::make("score-", answered_name(service, common.model));
  return start_scores(
      service,
      {.batch = *std::move(batch),
       .origin = http_request.origin(),
       .write =
           [identity](const std::vector<double>& scores, const json& usage) {
             json answer = {{"id", identity.id},
                            {"object", "list"},
                            {"created", identity.created},
                            {"model", identity.model},
                            {"data", json::array()}};
             for (std::size_t i = 0; i < scores.size(); ++i)
               answer["data"].push_back({{"index", i}, {"object", "score"}, {"score", scores[i]}});
             answer["usage"] = usage;
             return answer;
           }},
      wake);
}

HttpReply handle_rerank(ApiService& service, const HttpRequest& http_request, const Wake& wake) {
  auto read = read_logged(service, read_rerank_request, http_request.body);
  if (!read.ok()) return {error_response(read.error()), {}};
  ScoredTexts& common = read->common;
  if (auto error = check_scores(service, common.model)) return {error_response(*error), {}};
  auto batch =
      batch_of_pairs(service, http_request, common, {read->query}, read->documents, "documents");
  if (!batch.ok()) return {error_response(batch.error()), {}};
  const auto identity = AnswerIdentity::make("rerank-", answered_name(service, common.model));
  std::vector<std::string> returned;
  if (read->return_documents) returned = std::move(read->documents);
  std::int64_t num_returned_bytes = 0;
  for (const std::string& document : returned) num_returned_bytes += std::ssize(document);
  return start_scores(service,
                      {.batch = *std::move(batch),
                       .origin = http_request.origin(),
                       .num_returned_bytes = num_returned_bytes,
                       .write = [identity, top_n = read->top_n, returned = std::move(returned)](
                                    const std::vector<double>& scores, const json& usage) -> json {
                         return {{"id", identity.id},
                                 {"model", identity.model},
                                 {"results", ranked(scores, top_n, returned)},
                                 {"usage", usage}};
                       }},
                      wake);
}

}  // namespace pagoda
