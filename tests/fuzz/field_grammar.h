// Bodies of requests from a fuzzer's bytes, composed by the JSON Schemas of the field table. They
// have values at, inside and past their bounds, of other types, too deep or too long, and repeated
// names.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <string>
#include <vector>

#include "server/fields/field_reader.h"

namespace pagoda {

// Draws the text of a body for one of the POST endpoints, mostly well-formed.
std::string draw_body(FuzzedDataProvider& draws);

// Checks that the values read through `table` are within the bounds that it declares.
void check_bounds(const std::vector<Field>& table);

}  // namespace pagoda
