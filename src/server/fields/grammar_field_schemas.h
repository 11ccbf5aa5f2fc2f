// The grammar fields (grammar_fields.h) as JSON Schema, for /openapi.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pagoda {

// Returns the JSON Schema of the field `name`, as JSON text. No schema can say which texts are a
// grammar, or which JSON Schemas are supported. So it accepts some valid values, and no invalid
// ones.
std::string_view grammar_field_schema(std::string_view name);

// Returns the JSON Schema of a format of the type json_schema whose schema stands beside the type.
// read_format_at() takes more.
std::string_view flat_format_schema();

// Adds to `schema`, of an object with these fields, the rule that at most one asks for a grammar.
// `other`: a schema that holds if one further field asks for none; null: there is no such field.
void describe_grammars_together(nlohmann::json& schema, const nlohmann::json& other);

}  // namespace pagoda
