// The types of JSON that a schema allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ordered_json.h"

namespace pagoda {

// A set of types, one bit each.
using JsonTypes = std::uint8_t;
inline constexpr JsonTypes kStringType = 1, kNumberType = 2, kBooleanType = 4, kNullType = 8,
                           kObjectType = 16, kArrayType = 32, kAnyType = 63;

// Returns the types that values may have by a schema's type, enum, const, $ref, anyOf, oneOf and
// allOf: kAnyType if they leave no choice out, or contradict each other. `root`: the schema in
// which references are looked up. The time is bounded, whatever refers to what.
JsonTypes types_of(const OrderedJson& schema, const OrderedJson& root);

// Returns the strings that a schema lists by enum, const, $ref, anyOf and oneOf, and "null" if it
// allows null too; nullopt if other strings are allowed. The time is bounded as in types_of().
std::optional<std::vector<std::string>> string_choices_of(const OrderedJson& schema,
                                                          const OrderedJson& root);

}  // namespace pagoda
