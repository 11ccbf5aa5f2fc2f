// The endpoints that tell of the server and its model, under the names that OpenAI, vLLM and
// llama.cpp have for them.
#pragma once

#include <string_view>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpResponse models_response(const ApiService& service);
HttpResponse model_response(const ApiService& service, std::string_view name);
// Answers as a process does that runs, whatever state its model is in.
HttpResponse live_response();
HttpResponse health_response(const ApiService& service);
HttpResponse metrics_response(const ApiService& service);

// Tells how many sequences run or wait, for routers that look for the least (vLLM).
HttpResponse load_response(const ApiService& service);
// Forgets what the prefix cache has of a client's (HttpRequest::client).
HttpResponse reset_prefix_cache_response(ApiService& service, const std::string& client);
// Answers with CacheEvents::since() of what is a client's; `after` is its number in decimal.
HttpResponse cache_events_response(const ApiService& service, const std::string& after,
                                   const std::string& client);
// Tells the limits by which the engine works (vLLM).
HttpResponse server_info_response(const ApiService& service);
// Tells what a client needs to know of the model, and no path of the machine (llama.cpp).
HttpResponse props_response(const ApiService& service);
// Lists a slot for each sequence that can be computed at once, those in use first (llama.cpp).
HttpResponse slots_response(const ApiService& service);

}  // namespace pagoda
