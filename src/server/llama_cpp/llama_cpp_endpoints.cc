#include "server/llama_cpp/llama_cpp_endpoints.h"

#include "core/json.h"
#include "server/base/answer_schema.h"
#include "server/llama_cpp/infill.h"
#include "server/llama_cpp/infill_request.h"

namespace pagoda {
namespace {

using nlohmann::json;

json infill_schema() {
  return {{"type", "object"},
          {"properties", {{"content", text_schema()}, {"stop", {{"type", "boolean"}}}}}};
}

constexpr Endpoint kLlamaCppEndpoints[] = {
    {.path = "/infill",
     .read = handle_infill,
     .generates = true,
     .operation_id = "infill",
     .summary = "The text at a cursor, as llama.cpp answers editors",
     .request_schema = {"InfillRequest", infill_request_schema},
     .answer_schema = {"Infill", infill_schema}},
};

}  // namespace

EndpointTable llama_cpp_endpoints() {
  return {kLlamaCppEndpoints};
}

}  // namespace pagoda
