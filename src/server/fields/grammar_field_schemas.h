// The grammar fields (grammar_fields.h) as JSON Schema, for /openapi.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pagoda {

// Returns the JSON Schema of what the field `name` takes, as JSON text. A schema can't say which
// texts are a grammar, or which JSON Schemas are supported: these take some, and nothing that is
// refused.
std::string_view grammar_field_schema(std::string_view name);

// Adds to `schema`, of an object with these fields, that at most one of them asks for a grammar.
// `other`: what holds of the object where a further field asks for none; null: there is no other.
void describe_grammars_together(nlohmann::json& schema, const nlohmann::json& other);

}  // namespace pagoda
