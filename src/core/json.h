// nlohmann's JSON, with what takes the compiler long compiled once (json.cc): both kinds of values,
// and here, for the whole program, the ways from text to a value and back. nlohmann::json sorts the
// keys of objects, OrderedJson keeps their order.
//
// A header that only names the types includes <nlohmann/json_fwd.hpp> or core/ordered_json.h. All
// functions are thread-safe.
#pragma once

#include <iosfwd>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/ordered_json.h"
#include "core/status.h"

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<pagoda::OrderedObject>;

namespace pagoda {

// Returns the value that a text is, its objects' keys sorted, and is_discarded() where the text is
// no JSON. Values within more than `max_depth` lists and objects are left out, so that brackets
// nested without end fill no memory.
nlohmann::json parse_json(std::string_view text, int max_depth = std::numeric_limits<int>::max());
// Returns the same of all that a stream still has.
nlohmann::json parse_json(std::istream& stream);
// Parses a file's text that must be an object. kDataLoss begins with `where`, the file's name, and
// says at which line and column a text is no JSON.
Result<nlohmann::json> parse_json_file(std::string_view text, std::string_view where,
                                       int max_depth = std::numeric_limits<int>::max());
// Returns the same with keys in the text's order, the last value of a name that is there twice.
OrderedJson parse_ordered_json(std::string_view text);
OrderedJson parse_ordered_json(std::istream& stream);

// Writes a value as UTF-8, with U+FFFD for what is not; never throws. It stands in one line, or with
// `indent` spaces before what lies within.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const OrderedJson& value);
// Writes a text as a JSON string.
std::string json_string(std::string_view text);

}  // namespace pagoda
