// JSON schemas in the form that generators of clients take: one type each, and a
// name for every larger part that occurs more than once.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace pagoda {

// Replaces enumerations of several types by `anyOf` with one of each type, which says its type; and
// a list or an object that may be null by `anyOf` with null. It does so within a schema too, which
// accepts the same values as before. A list in an enumeration may have one item at most.
void split_types(nlohmann::json& schema);

// Replaces parts by references and adds them to `named`: those with a `title`, which becomes the
// name, and each larger part that occurs more than once, with the name of its property. Schemas
// below `not` stay whole, without titles.
//
// named: schemas by name, as components/schemas of the document.
void share_parts(nlohmann::json& named);

// Removes the titles in a schema, and its own.
void remove_titles(nlohmann::json& schema);

}  // namespace pagoda
