// RequestJson: a request's body as the client sent it, the keys of objects in its order. Answers and
// /openapi.json are made of nlohmann::json, which sorts them.
#pragma once

#include "core/ordered_json.h"

namespace pagoda {

using RequestJson = OrderedJson;

}  // namespace pagoda
