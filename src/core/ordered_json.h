// OrderedJson: JSON whose objects keep their keys in the order in which they came. A key that is
// there twice keeps its first place and takes its last value, as in Python. Chat templates print
// objects in that order, and an answer that is held to a schema has its properties in it.
//
// This header only names the type; core/json.h has what it does, and reads and writes it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/ordered_object.h"

namespace pagoda {

using OrderedJson = nlohmann::basic_json<OrderedObject>;

}  // namespace pagoda
