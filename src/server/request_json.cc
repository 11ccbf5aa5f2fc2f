#include "server/request_json.h"

#include "core/json.h"

namespace pagoda {

RequestJson parse_request_json(std::string_view text) {
  return RequestJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string json_text(const RequestJson& value) {
  return value.dump(-1, ' ', false, RequestJson::error_handler_t::replace);
}

}  // namespace pagoda
