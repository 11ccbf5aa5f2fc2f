// The bodies of /api/chat and /api/generate, under Ollama's names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/chat/chat_request.h"

namespace pagoda {

struct OllamaGenerateRequest {
  ChatRequest chat;
  std::string prompt, system;
  std::string suffix;   // text after the answer, which fills the gap; "": none
  bool is_raw = false;  // the chat template is not applied
};

// Returns the fields, which point into `request`: it must outlive the result. Those of a chat are
// among them, except what makes no sense for one prompt with one answer.
std::vector<Field> ollama_generate_field_table(OllamaGenerateRequest& request);

// Readers of an object that parse_json_body() returned.
ApiResult<ChatRequest> read_ollama_chat_request(RequestJson body,
                                                std::vector<std::string>& unknown_names);
ApiResult<OllamaGenerateRequest> read_ollama_generate_request(
    RequestJson body, std::vector<std::string>& unknown_names);

nlohmann::json ollama_chat_schema();
nlohmann::json ollama_generate_schema();

}  // namespace pagoda
