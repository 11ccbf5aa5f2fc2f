// RequestJson: a request's body as the client sent it, with the keys of objects in the client's
// order. Answers and /openapi.json are nlohmann::json, which sorts keys.
#pragma once

#include "core/ordered_json.h"

namespace pagoda {

using RequestJson = OrderedJson;

}  // namespace pagoda
