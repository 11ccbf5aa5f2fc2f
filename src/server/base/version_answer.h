// The answer with the server's version, which several APIs have, and its schema.
#pragma once

#include "core/json.h"
#include "core/version.h"
#include "server/base/answer_schema.h"
#include "server/base/http_message.h"
#include "server/base/json_body.h"

namespace pagoda {

inline HttpResponse version_response() {
  return json_response({{"version", version()}});
}

inline nlohmann::json version_schema() {
  return object_schema({{"version", text_schema()}});
}

}  // namespace pagoda
