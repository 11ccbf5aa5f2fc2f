// RequestJson: a request's body as the client sent it, the keys of objects in its order. Chat
// templates print objects in that order, and an answer that is held to a schema has its properties
// in it. A key that is there twice keeps its first place and takes its last value, as in Python.
//
// It is used like nlohmann::json, by <nlohmann/json.hpp>. That one sorts keys; answers and
// /openapi.json are made of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/ordered_object.h"

namespace pagoda {

using RequestJson = nlohmann::basic_json<OrderedObject>;

}  // namespace pagoda
