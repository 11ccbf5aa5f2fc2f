// The endpoints that describe the server and its model, as in OpenAI's API, vLLM and llama.cpp.
#pragma once

#include <string>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/server_facts.h"

namespace pagoda {

// Lists the model under all its names. `is_for_anthropic`, here and below: in the shape of
// Anthropic's API.
HttpResponse models_response(const ApiService& service, bool is_for_anthropic);
// Returns the model under one name.
HttpResponse model_response(const ApiService& service, const std::string& name,
                            bool is_for_anthropic);
// Answers that the process runs, whatever state its model is in.
HttpResponse live_response();
HttpResponse health_response(const ApiService& service);
// Writes the metrics in the format and the encoding that the request prefers.
HttpResponse metrics_response(const ServerFacts& facts);

// Returns how many sequences run or wait, for routers that look for the fewest (vLLM).
HttpResponse load_response(const ApiService& service);
// Drops a client's part of the prefix cache. `client`: HttpRequest::client.
HttpResponse reset_prefix_cache_response(ApiService& service, const std::string& client);
// Answers with CacheEvents::since() for a client. `after`: the number of an event, in decimal.
HttpResponse cache_events_response(const ApiService& service, const std::string& after,
                                   const std::string& client);
// Returns the limits of the engine (vLLM).
HttpResponse server_info_response(const ApiService& service);
// Returns what a client needs to know of the model, and no path of the machine (llama.cpp).
HttpResponse props_response(const ApiService& service);
// Lists a slot for each sequence that can be computed at once, those in use first (llama.cpp).
HttpResponse slots_response(const ApiService& service);

}  // namespace pagoda
