#include "server/trace_exporter.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/start_thread.h"
#include "core/version.h"
#include "server/base/json_body.h"
#include "server/generation/answer_json.h"
#include "server/generation/request_trace.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxWaiting = 4096;  // waiting spans; later ones are lost
constexpr std::size_t kMaxBatch = 512;     // waiting spans that are sent without delay
constexpr std::chrono::seconds kSendsEvery(1);
constexpr long kConnectTimeoutS = 2, kTimeoutS = 5;
constexpr int kServerKind = 2, kInternalKind = 1, kErrorStatus = 2;  // from OTLP's enumerations

json text(std::string_view value) {
  return {{"stringValue", value}};
}

// Returns an integer as OTLP's JSON writes 64-bit ones: in a string.
json integer(std::int64_t value) {
  return {{"intValue", std::to_string(value)}};
}

json seconds(double value) {
  return {{"doubleValue", value}};
}

json list(json value) {
  return {{"arrayValue", {{"values", json::array({std::move(value)})}}}};
}

using Attributes = std::vector<std::pair<std::string_view, json>>;

json attribute_list(Attributes attributes) {
  json list = json::array();
  for (auto& [key, value] : attributes) list.push_back({{"key", key}, {"value", std::move(value)}});
  return list;
}

std::string random_span_id() {
  return random_hex_digits().substr(0, 16);
}

// A converter from points of the monotonic clock to Unix times, as nanoseconds in a string.
class TimesOfDay {
 public:
  std::string operator()(Clock::TimePoint point) const {
    using std::chrono::nanoseconds;
    return std::to_string(now_ns_ - std::chrono::duration_cast<nanoseconds>(now_ - point).count());
  }

 private:
  const Clock::TimePoint now_ = Clock::system().now();
  const std::int64_t now_ns_ = unix_time_ns();
};

Clock::TimePoint after(Clock::TimePoint point, double seconds) {
  return point + std::chrono::duration_cast<Clock::TimePoint::duration>(
                     std::chrono::duration<double>(seconds));
}

json span(std::string_view name, int kind, const RequestTrace& trace, std::string_view id,
          std::string_view parent_id) {
  json made = {{"traceId", trace.trace_id()}, {"spanId", id}, {"name", name}, {"kind", kind}};
  if (!parent_id.empty()) made["parentSpanId"] = parent_id;
  return made;
}

json request_span(const AccessRecord& record, std::string_view route, std::string_view id,
                  const TimesOfDay& time_of_day) {
  const Clock::TimePoint end = Clock::system().now();
  json made = span(fmt::format("{} {}", record.method, route), kServerKind, *record.trace, id,
                   record.trace->parent_id());
  made["startTimeUnixNano"] = time_of_day(after(end, -record.seconds));
  made["endTimeUnixNano"] = time_of_day(end);
  Attributes attributes = {
      {"http.request.method", text(record.method)},
      {"http.route", text(route)},
      {"http.response.body.size", integer(static_cast<std::int64_t>(record.num_bytes))},
      {"http.response.header.x-request-id", list(text(record.request_id))}};
  if (record.status != 0)
    attributes.emplace_back("http.response.status_code", integer(record.status));
  if (!record.client_name.empty()) attributes.emplace_back("enduser.id", text(record.client_name));
  made["attributes"] = attribute_list(std::move(attributes));
  if (record.status >= 500 || !record.how_it_ended.empty())
    made["status"] = {{"code", kErrorStatus}, {"message", record.how_it_ended}};
  return made;
}

// Makes a sample's span. Its attributes have the names of OpenTelemetry's conventions for
// generative models, and its times those of vLLM.
json sample_span(const RequestTrace::Sample& sample, const RequestTrace& trace,
                 std::string_view parent_id, const TimesOfDay& time_of_day) {
  const ServerMetrics::FinishedSample& figures = sample.figures;
  json made = span("generate", kInternalKind, trace, random_span_id(), parent_id);
  made["startTimeUnixNano"] = time_of_day(sample.arrival);
  made["endTimeUnixNano"] = time_of_day(after(sample.arrival, figures.latency_s));
  Attributes attributes = {
      {"gen_ai.usage.input_tokens", integer(figures.num_prompt_tokens)},
      {"gen_ai.usage.output_tokens", integer(figures.num_output_tokens)},
      {"gen_ai.response.finish_reasons", list(text(finish_reason_name(figures.reason)))},
      {"gen_ai.latency.e2e", seconds(figures.latency_s)}};
  if (figures.num_output_tokens > 0) {
    const double first_s = figures.queue_s + figures.prefill_s;
    attributes.emplace_back("gen_ai.latency.time_in_queue", seconds(figures.queue_s));
    attributes.emplace_back("gen_ai.latency.time_to_first_token", seconds(first_s));
    attributes.emplace_back("gen_ai.latency.time_in_model_prefill", seconds(figures.prefill_s));
    attributes.emplace_back("gen_ai.latency.time_in_model_decode", seconds(figures.decode_s));
    made["events"] = json::array(
        {{{"name", "started"},
          {"timeUnixNano", time_of_day(after(sample.arrival, figures.queue_s))}},
         {{"name", "first token"}, {"timeUnixNano", time_of_day(after(sample.arrival, first_s))}}});
  }
  made["attributes"] = attribute_list(std::move(attributes));
  return made;
}

std::size_t drop_answer(char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

}  // namespace

struct TraceExporter::Impl {
  void run();
  void send(const std::vector<json>& spans);
  std::string body_of(const std::vector<json>& spans) const;

  std::string url;
  json service;
  bool failed = false;  // of the last send; used only by the sending thread

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<json> waiting;
  std::size_t num_lost = 0;
  bool ends = false;
  std::thread thread;
};

// Sends spans until the exporter ends and no span waits.
void TraceExporter::Impl::run() {
  std::unique_lock lock(mutex);
  while (!ends || !waiting.empty()) {
    changed.wait_for(lock, kSendsEvery, [this] { return ends || waiting.size() >= kMaxBatch; });
    if (waiting.empty()) continue;
    std::vector<json> spans = std::exchange(waiting, {});
    const std::size_t lost = std::exchange(num_lost, 0);
    lock.unlock();
    if (lost > 0) log_warning("[traces] {} spans were lost: {} takes them too slowly", lost, url);
    send(spans);
    lock.lock();
  }
}

std::string TraceExporter::Impl::body_of(const std::vector<json>& spans) const {
  const json scope = {{"name", "pagoda"}, {"version", version()}};
  const json resource = {{"attributes", attribute_list({{"service.name", service},
                                                        {"service.version", text(version())}})}};
  return json_text(
      json{{"resourceSpans",
            json::array({{{"resource", resource},
                          {"scopeSpans", json::array({{{"scope", scope}, {"spans", spans}}})}}})}});
}

// Sends spans. Logs a failure once, until sending succeeds again.
void TraceExporter::Impl::send(const std::vector<json>& spans) {
  const std::unique_ptr<CURL, void (*)(CURL*)> owned(curl_easy_init(), curl_easy_cleanup);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      curl_slist_append(nullptr, "Content-Type: application/json"), curl_slist_free_all);
  CURL* const easy = owned.get();
  const std::string body = body_of(spans);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "pagoda");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectTimeoutS);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, kTimeoutS);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_answer);
  const CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  const bool is_taken = code == CURLE_OK && status >= 200 && status < 300;
  if (!is_taken && !failed) {
    log_warning("[traces] {}: expected a collector that takes spans, got: {}", url,
                code == CURLE_OK ? fmt::format("HTTP {}", status)
                : code == CURLE_OUT_OF_MEMORY
                    ? "a header line of more than 100 KB"  // libcurl's word for it
                    : curl_easy_strerror(code));
  }
  failed = !is_taken;
}

TraceExporter::TraceExporter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<TraceExporter>> TraceExporter::start(const std::string& url) {
  const std::size_t host = url.find("://") + 3;
  if (!(url.starts_with("http://") || url.starts_with("https://")) || host == url.size()) {
    return invalid_argument("[traces] {}: expected a URL such as http://localhost:4318/v1/traces",
                            url);
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  auto impl = std::make_unique<Impl>();
  impl->url = url.find('/', host) == std::string::npos ? url + "/v1/traces" : url;
  const char* const name = std::getenv("OTEL_SERVICE_NAME");
  impl->service = text(name != nullptr && *name != '\0' ? name : "pagoda");
  impl->thread = start_thread([impl = impl.get()] { impl->run(); });
  return std::unique_ptr<TraceExporter>(new TraceExporter(std::move(impl)));
}

TraceExporter::~TraceExporter() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->ends = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

void TraceExporter::write(const AccessRecord& record, std::string_view route) {
  const TimesOfDay time_of_day;
  const std::string id = random_span_id();
  std::vector<json> spans = {request_span(record, route, id, time_of_day)};
  for (const RequestTrace::Sample& sample : record.trace->samples())
    spans.push_back(sample_span(sample, *record.trace, id, time_of_day));
  std::lock_guard lock(impl_->mutex);
  if (impl_->waiting.size() + spans.size() > kMaxWaiting) {
    impl_->num_lost += spans.size();
    return;
  }
  impl_->waiting.insert(impl_->waiting.end(), std::make_move_iterator(spans.begin()),
                        std::make_move_iterator(spans.end()));
  if (impl_->waiting.size() >= kMaxBatch) impl_->changed.notify_all();
}

}  // namespace pagoda
