#include "server/information/information.h"

#include <fmt/chrono.h>

#include <charconv>

#include "core/json.h"
#include "core/version.h"
#include "server/base/accepted.h"
#include "server/base/error_response.h"
#include "server/base/gzip.h"
#include "server/base/json_body.h"
#include "server/fields/generation_fields.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Returns when the model's newest file was written, in seconds since 1970.
std::int64_t created(const ApiService& service) {
  return service.model.weights.modified_ns / 1'000'000'000;
}

json model_json(const ApiService& service, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", created(service)},
          {"owned_by", "pagoda"},
          {"root", service.model.name},
          {"parent", nullptr},
          {"max_model_len", service.model.engine->limits().max_model_len}};
}

// Returns a model in the shape of Anthropic's API.
json anthropic_model_json(const ApiService& service, const std::string& name) {
  const int max_model_len = service.model.engine->limits().max_model_len;
  return {{"id", name},
          {"type", "model"},
          {"display_name", name},
          {"created_at",
           fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(created(service))))},
          {"lifecycle", "active"},
          {"max_input_tokens", max_model_len},
          {"max_tokens", max_model_len}};
}

// Returns how a request is sampled that has no sampling fields, under llama.cpp's names.
json default_sampling_json(const ServedModel& model) {
  const SamplingParams params = to_sampling_params({}, model.defaults, std::nullopt, 0);
  return {{"temperature", params.temperature},
          {"top_k", params.top_k},
          {"top_p", params.top_p},
          {"min_p", params.min_p},
          {"repeat_penalty", params.repetition_penalty},
          {"repeat_last_n", params.repeat_last_n.value_or(-1)},
          {"presence_penalty", params.presence_penalty},
          {"frequency_penalty", params.frequency_penalty}};
}

}  // namespace

HttpResponse models_response(const ApiService& service, bool is_for_anthropic) {
  const auto shown = is_for_anthropic ? anthropic_model_json : model_json;
  json list = json::array();
  for (const std::string& name : service.model_names) list.push_back(shown(service, name));
  if (!is_for_anthropic) return json_response({{"object", "list"}, {"data", std::move(list)}});
  return json_response({{"data", std::move(list)},
                        {"has_more", false},
                        {"first_id", service.model_names.front()},
                        {"last_id", service.model_names.back()}});
}

HttpResponse model_response(const ApiService& service, const std::string& name,
                            bool is_for_anthropic) {
  if (auto error = check_model_name(service, name)) return error_response(*error);
  return json_response(is_for_anthropic ? anthropic_model_json(service, name)
                                        : model_json(service, name));
}

HttpResponse live_response() {
  return json_response({{"status", "ok"}});
}

HttpResponse health_response(const ApiService& service) {
  if (service.model.engine->stats().healthy) return live_response();
  return error_response({503, "the engine is down", "", "service_unavailable"});
}

HttpResponse load_response(const ApiService& service) {
  const EngineStats stats = service.model.engine->stats();
  return json_response({{"server_load", stats.num_running + stats.num_waiting}});
}

HttpResponse reset_prefix_cache_response(ApiService& service, const std::string& client) {
  service.model.engine->reset_prefix_cache(client);
  return json_response(json::object());
}

HttpResponse cache_events_response(const ApiService& service, const std::string& after,
                                   const std::string& client) {
  if (!service.cache_events) {
    return error_response({404,
                           "events of the prefix cache are told with --prefix-cache-events alone",
                           "", "no_cache_events"});
  }
  std::uint64_t number = 0;
  const char* const end = after.data() + after.size();
  if (const auto read = std::from_chars(after.data(), end, number);
      read.ec != std::errc() || read.ptr != end) {
    return error_response(
        {404, fmt::format("expected a number of events, got {}", after), "after", "not_found"});
  }
  const CacheEvents::Page page = service.cache_events->since(number, client);
  json events = json::array();
  for (const CacheEvent& event : page.events) {
    json told = {{"digest", to_hex(event.digest)}};
    const bool is_stored = event.kind == CacheEventKind::kStored;
    told["type"] = is_stored ? "stored" : "removed";
    if (is_stored) told["parent"] = to_hex(event.parent);
    events.push_back(std::move(told));
  }
  return json_response({{"root", to_hex(page.root)},
                        {"block_size", service.model.engine->limits().kv_cache.block_size},
                        {"is_whole", page.is_whole},
                        {"events", std::move(events)},
                        {"next", page.next}});
}

HttpResponse server_info_response(const ApiService& service) {
  const EngineLimits& limits = service.model.engine->limits();
  const KvCacheInfo& cache = limits.kv_cache;
  return json_response({{"version", version()},
                        {"commit", commit()},
                        {"model", service.model.name},
                        {"architecture", service.model.config.architecture},
                        {"device", service.model.device},
                        {"max_model_len", limits.max_model_len},
                        {"max_num_seqs", limits.max_num_seqs},
                        {"max_num_batched_tokens", limits.max_num_batched_tokens},
                        {"max_queue", limits.max_queue},
                        {"kv_cache",
                         {{"dtype", kv_formats_name(cache.formats)},
                          {"block_size", cache.block_size},
                          {"num_blocks", cache.num_blocks},
                          {"bytes_per_token", cache.bytes_per_token},
                          {"enable_prefix_caching", cache.has_prefix_cache}}}});
}

HttpResponse props_response(const ApiService& service) {
  const ServedModel& model = service.model;
  const EngineLimits& limits = model.engine->limits();
  return json_response(
      {{"default_generation_settings",
        {{"n_ctx", limits.max_model_len}, {"params", default_sampling_json(model)}}},
       {"total_slots", limits.max_num_seqs},
       {"model_alias", service.model_names.front()},
       {"model_path", model.name},
       {"chat_template", model.chat_template ? model.chat_template->text() : ""},
       {"bos_token", model.tokenizer->bos_token()},
       {"eos_token", model.tokenizer->eos_token()},
       {"modalities", {{"vision", false}, {"audio", false}}},
       {"build_info", fmt::format("pagoda {}", version_and_commit())},
       {"is_sleeping", false}});
}

HttpResponse slots_response(const ApiService& service) {
  const Engine& engine = *service.model.engine;
  const int num_running = engine.stats().num_running;
  json slots = json::array();
  for (int i = 0; i < engine.limits().max_num_seqs; ++i) {
    slots.push_back(
        {{"id", i}, {"n_ctx", engine.limits().max_model_len}, {"is_processing", i < num_running}});
  }
  return json_response(slots);
}

HttpResponse metrics_response(const ServerFacts& facts) {
  const Engine& engine = *facts.service.model.engine;
  const double weight = accepted_weight(facts.accept, "application/openmetrics-text");
  const bool is_open = weight > 0 && weight >= accepted_weight(facts.accept, "text/plain");
  HttpResponse response = {
      .content_type = is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8",
      .headers = {{"Vary", "Accept, Accept-Encoding"}},
      .body = facts.service.metrics.text(
          engine.stats(), engine.limits(),
          is_open ? ServerMetrics::Format::kOpenMetrics : ServerMetrics::Format::kPrometheus)};
  if (accepted_weight(facts.accept_encoding, "gzip") > 0) {
    response.body = gzip(response.body);
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  return response;
}

}  // namespace pagoda
