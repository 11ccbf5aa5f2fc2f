// nlohmann's JSON. The code that takes long to compile is compiled only once, in json.cc: both
// types of values, and the functions below, by which the whole program parses and writes JSON.
// nlohmann::json sorts the keys of objects, OrderedJson keeps their order.
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

// Parses a text; objects get sorted keys. The result's is_discarded() is true if the text is not
// JSON. Values within more than `max_depth` lists and objects are left out, so that a text of
// deeply nested brackets does not fill the memory.
nlohmann::json parse_json(std::string_view text, int max_depth = std::numeric_limits<int>::max());
// Parses the rest of a stream in the same way.
nlohmann::json parse_json(std::istream& stream);
// Parses a file's text, which must be an object. Errors are kDataLoss; their message begins with
// `where`, the file's name, and gives the line and column at which the text is not JSON.
Result<nlohmann::json> parse_json_file(std::string_view text, std::string_view where,
                                       int max_depth = std::numeric_limits<int>::max());
// Parses a text; objects keep the text's order of keys. A key that occurs twice has its last value.
OrderedJson parse_ordered_json(std::string_view text);
OrderedJson parse_ordered_json(std::istream& stream);
// Returns whether a text is JSON. Zero bytes and byte order marks, which the parser passes over, are
// not.
bool is_json(std::string_view text);
// Returns whether a text is a JSON object. Its values take no memory.
bool is_json_object(std::string_view text);

// Writes a value as UTF-8, with U+FFFD in place of invalid bytes; never throws. The text is one
// line, or each level is indented by `indent` spaces.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const OrderedJson& value);
// Writes a text as a JSON string.
std::string json_string(std::string_view text);

}  // namespace pagoda
