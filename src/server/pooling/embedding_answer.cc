#include "server/pooling/embedding_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdint>
#include <iterator>

#include "core/json.h"
#include "server/base/base64.h"
#include "server/base/error_response.h"

namespace pagoda {
namespace {

// Bytes of a number's text: -1.17549435e-38 and a comma; in base64, 4/3 of 4 bytes.
constexpr std::int64_t kNumberTextBytes = 16;
constexpr std::int64_t kBase64NumberBytes = 6;
constexpr std::int64_t kAroundEmbeddingBytes = 96;

std::int64_t count_numbers(const ServedModel& model, const EmbeddingBatchRequest& request) {
  return std::ssize(request.prompts) * request.dimensions.value_or(model.config.hidden_size);
}

std::int64_t count_text_bytes(const EmbeddingJob& job, std::int64_t num_numbers) {
  const std::int64_t number_bytes = job.layout.is_base64 ? kBase64NumberBytes : kNumberTextBytes;
  return num_numbers * number_bytes + std::ssize(job.batch.prompts) * kAroundEmbeddingBytes;
}

std::string text_before(EmbeddingFrame frame, int index) {
  switch (frame) {
    case EmbeddingFrame::kNone:
      break;
    case EmbeddingFrame::kOpenAi:
      return fmt::format(R"({{"object":"embedding","index":{},"embedding":)", index);
    case EmbeddingFrame::kLlamaCpp:
      return fmt::format(R"({{"index":{},"embedding":[)", index);
  }
  return "";
}

std::string_view text_behind(EmbeddingFrame frame) {
  switch (frame) {
    case EmbeddingFrame::kNone:
      break;
    case EmbeddingFrame::kOpenAi:
      return "}";
    case EmbeddingFrame::kLlamaCpp:
      return "]}";
  }
  return "";
}

std::string base64_of(const std::vector<float>& embedding) {
  std::string bytes;
  bytes.reserve(embedding.size() * sizeof(float));
  for (const float number : embedding) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
  }
  return base64(bytes);
}

class PendingEmbeddings : public PendingReply {
 public:
  PendingEmbeddings(std::unique_ptr<EmbeddingBatch> batch, EmbeddingLayout layout, HeldBytes held,
                    std::int64_t num_text_bytes)
      : batch_(std::move(batch)), layout_(std::move(layout)), held_(std::move(held)) {
    text_.reserve(layout_.head.size() + static_cast<std::size_t>(num_text_bytes));
    text_ = layout_.head;
  }

  std::optional<HttpReply> poll() override {
    const auto embeddings = batch_->take();
    if (!embeddings.ok()) return HttpReply{error_response(api_error(embeddings.status())), {}};
    for (const std::vector<float>& embedding : *embeddings) write(embedding);
    if (!batch_->finished()) return {};
    text_ += layout_.tail(*batch_);
    return HttpReply{HttpResponse{.body = std::move(text_)}, {}};
  }

 private:
  void write(const std::vector<float>& embedding) {
    if (num_written_ > 0) text_ += ',';
    text_ += text_before(layout_.frame, num_written_);
    ++num_written_;
    if (layout_.is_base64) {
      text_ += '"' + base64_of(embedding) + '"';
    } else {
      // Numbers have the fewest digits that read back as the same float.
      fmt::format_to(std::back_inserter(text_), "[{}]", fmt::join(embedding, ","));
    }
    text_ += text_behind(layout_.frame);
  }

  std::unique_ptr<EmbeddingBatch> batch_;
  const EmbeddingLayout layout_;
  const HeldBytes held_;
  std::string text_;
  int num_written_ = 0;
};

}  // namespace

std::optional<ApiError> check_embedding(const ApiService& service, const std::string& model_name,
                                        std::optional<int> dimensions) {
  const ServedModel& model = service.model;
  if (auto error = check_model_name(service, model_name)) return error;
  if (!model.no_embeddings.ok())
    return bad_request("model", model.no_embeddings.message(), "no_embeddings");
  if (!dimensions || *dimensions <= model.config.hidden_size) return {};
  return bad_request("dimensions",
                     fmt::format("'dimensions': expected at most {}, got {}",
                                 model.config.hidden_size, *dimensions),
                     "out_of_range");
}

nlohmann::json usage_json(const EmbeddingBatch& batch) {
  const int num_tokens = batch.num_prompt_tokens();
  return {{"prompt_tokens", num_tokens},
          {"total_tokens", num_tokens},
          {"prompt_tokens_details", {{"cached_tokens", batch.num_cached_tokens()}}}};
}

std::function<void(const EmbeddingEnd&)> observer_of_embeddings(ApiService& service,
                                                                const RequestOrigin& origin) {
  return [&metrics = service.metrics, arrival = origin.arrival,
          trace = origin.trace](const EmbeddingEnd& end) {
    const ServerMetrics::FinishedSample sample = {
        .reason = end.reason,
        .latency_s = seconds_between(arrival, Clock::system().now()),
        .num_prompt_tokens = end.num_prompt_tokens};
    metrics.observe_finished(sample);
    if (trace) trace->add({arrival, sample});
  };
}

std::int64_t num_prompt_bytes(const EmbeddingBatchRequest& request) {
  std::int64_t num_bytes = 0;
  for (const std::vector<int>& prompt : request.prompts)
    num_bytes += std::ssize(prompt) * std::int64_t{sizeof(int)};
  return num_bytes;
}

HttpReply start_embeddings(ApiService& service, EmbeddingJob job, const Wake& wake) {
  const std::int64_t num_numbers = count_numbers(service.model, job.batch);
  const std::int64_t num_text_bytes = count_text_bytes(job, num_numbers);
  // An embedding waits in memory until all earlier ones have come, and is written then.
  const std::int64_t num_waiting_bytes = num_numbers * std::int64_t{sizeof(float)};
  const std::int64_t num_kept_bytes = num_prompt_bytes(job.batch);
  HeldBytes held(job.origin.held);
  if (const Status size = held.grow(num_text_bytes + num_waiting_bytes + num_kept_bytes);
      !size.ok())
    return {error_response(api_error(size, "input")), {}};
  job.batch.on_end = observer_of_embeddings(service, job.origin);
  auto batch = EmbeddingBatch::start(service.model, std::move(job.batch), wake);
  if (!batch.ok()) return {error_response(api_error(batch.status(), "input")), {}};
  return {std::make_unique<PendingEmbeddings>(*std::move(batch), std::move(job.layout),
                                              std::move(held), num_text_bytes),
          {}};
}

}  // namespace pagoda
