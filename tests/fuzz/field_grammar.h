// Bodies of requests from a fuzzer's bytes, composed from the field table by the JSON Schemas that
// it says of itself: values at, inside and past their bounds, of other types, too deep, too long,
// names twice.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <string>
#include <vector>

#include "server/fields/field_reader.h"

namespace pagoda {

// Draws the text of a body for one of the POST endpoints, mostly well-formed.
std::string draw_body(FuzzedDataProvider& draws);

// Checks that what was read through `table` holds nothing past the bounds that it declares.
void check_bounds(const std::vector<Field>& table);

}  // namespace pagoda
