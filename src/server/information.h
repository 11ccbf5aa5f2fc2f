// The endpoints that tell of the server and the model: models, health, version, metrics, tokenize,
// detokenize.
#pragma once

#include <string_view>

#include "server/api_service.h"
#include "server/http_message.h"

namespace pagoda {

HttpResponse models_response(const ApiService& service);
HttpResponse model_response(const ApiService& service, std::string_view name);
HttpResponse health_response(const ApiService& service);
HttpResponse version_response();
HttpResponse metrics_response(const ApiService& service);
HttpResponse tokenize_response(ApiService& service, const HttpRequest& request);
HttpResponse detokenize_response(ApiService& service, const HttpRequest& request);

}  // namespace pagoda
