// OrderedJson: JSON whose objects keep their keys in the order of the text. A key that occurs twice
// keeps its first place and has its last value, as in Python. Chat templates print objects in this
// order, and an answer that follows a schema has the schema's properties in this order.
//
// This header only names the type; core/json.h defines it, and parses and writes it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/ordered_object.h"

namespace pagoda {

using OrderedJson = nlohmann::basic_json<OrderedObject>;

}  // namespace pagoda
