// POST /completion as in llama.cpp: a text or token ids, continued.
#pragma once

#include "server/generation/api_service.h"

namespace pagoda {

HttpReply handle_llama_cpp_completion(ApiService& service, const HttpRequest& request,
                                      const Wake& wake);

}  // namespace pagoda
