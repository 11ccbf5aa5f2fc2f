// The endpoints that show the tokenizer and the chat template: vLLM's tokenize, detokenize and
// tokenizer_info, llama.cpp's apply-template.
#pragma once

#include "server/base/http_message.h"
#include "server/generation/api_service.h"

namespace pagoda {

HttpResponse tokenize_response(ApiService& service, const HttpRequest& request);
HttpResponse detokenize_response(ApiService& service, const HttpRequest& request);

// Returns what clients need that render and count tokens by themselves (lm-eval's remote
// tokenizer), under the names of tokenizer_config.json.
HttpResponse tokenizer_info_response(const ApiService& service);
// Returns the text of the prompt that a request for a chat completion would have.
HttpResponse apply_template_response(ApiService& service, const HttpRequest& request);

}  // namespace pagoda
