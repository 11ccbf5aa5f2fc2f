#include "server/openapi_schemas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/json.h"

namespace pagoda {
namespace {

using nlohmann::json;

// The length of a part's text from which on a reference is shorter and worth a name.
constexpr std::size_t kMinSharedChars = 120;

// Keywords that describe one place of a part. They stay there, beside the reference.
constexpr const char* kSaidOfPlaces[] = {"description", "default"};

// Calls `visit` for each schema directly within `schema`: with it, the keyword that holds it, and
// the property's name, or "" if it is no property's.
template <typename Visit>
void for_each_inner(json& schema, Visit visit) {
  constexpr std::string_view kOne[] = {"additionalProperties", "else", "if", "items", "not",
                                       "propertyNames",        "then"};
  constexpr std::string_view kSeveral[] = {"allOf", "anyOf", "oneOf"};
  for (const auto& [keyword, value] : schema.items()) {
    const auto is_of = [&name = keyword](const auto& keywords) {
      return std::find(std::begin(keywords), std::end(keywords), name) != std::end(keywords);
    };
    if (keyword == "properties") {
      for (const auto& [name, inner] : value.items()) visit(inner, keyword, name);
    } else if (is_of(kSeveral)) {
      for (json& inner : value) visit(inner, keyword, std::string());
    } else if (is_of(kOne) && value.is_object()) {
      visit(value, keyword, std::string());
    }
  }
}

const char* type_of(const json& value) {
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  return value.is_number() ? "number" : value.type_name();
}

// Returns the schema of one value alone. Of a truth value it is an enumeration: generators of
// clients take no `const` of that type.
json equal_to(const json& value) {
  json schema = {{"type", type_of(value)}};
  if (value.is_array()) {
    PAGODA_CHECK(value.size() <= 1, "a list of several values in an enumeration");
    schema["items"] = value.empty() ? json::object() : equal_to(value.front());
    schema["minItems"] = value.size();
    schema["maxItems"] = value.size();
  } else if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      schema["properties"][name] = equal_to(inner);
      schema["required"].push_back(name);
    }
    schema["additionalProperties"] = false;
  } else if (value.is_boolean()) {
    schema["enum"] = json::array({value});
  } else if (!value.is_null()) {
    schema["const"] = value;
  }
  return schema;
}

// Returns schemas of one type each, which accept these values together.
json one_typed(const json& values) {
  json schemas = json::array();
  for (const json& value : values) {
    const auto same = std::ranges::find_if(schemas, [&](const json& schema) {
      return (schema.contains("enum") || schema.contains("const")) &&
             schema.at("type") == type_of(value);
    });
    if (same == schemas.end()) {
      schemas.push_back(equal_to(value));
      continue;
    }
    if (same->contains("const")) (*same)["enum"].push_back(same->at("const"));
    same->erase("const");
    (*same)["enum"].push_back(value);
  }
  return schemas;
}

// Takes the keywords that describe a schema's place out of it.
json take_said(json& schema) {
  json said = json::object();
  for (const char* keyword : kSaidOfPlaces) {
    if (!schema.contains(keyword)) continue;
    said[keyword] = std::move(schema[keyword]);
    schema.erase(keyword);
  }
  return said;
}

// Returns a property's name as a schema's: tool_choice becomes ToolChoice.
std::string in_capitals(std::string_view name) {
  std::string capitals;
  bool begins = true;
  for (const char c : name) {
    const bool is_part = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_part)
      capitals += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = !is_part;
  }
  return capitals;
}

// Finds the parts that occur more than once. First every larger part is folded: its place keeps its
// index instead, as a reference that is a number. Then parts of one place alone are put back.
class Parts {
 public:
  // Folds what is within a named schema, which is a part itself.
  void add_named(const std::string& name, json& schema) {
    fold_inner(schema, name, name);
    json unsaid = schema;
    take_said(unsaid);
    Part& part = intern(std::move(unsaid), name, name);
    part.name = name;
    part.is_named = true;
  }

  void count_uses(json& schema) {
    for_each_inner(schema, [this](json& inner, const auto&, const auto&) {
      if (Part* const part = part_of(inner)) ++part->num_uses;
      count_uses(inner);
    });
  }

  // Gives a name to each part that has a title or several places, and adds these parts to `named`.
  void name_shared(json& named) {
    for (Part& part : parts_) count_uses(part.schema);
    for (Part& part : parts_) {
      part.is_shared = part.is_named || part.has_title || part.num_uses > 1;
      if (part.is_named || !part.is_shared) continue;
      part.name = unused_name(named, part);
      named[part.name] = part.schema;
    }
  }

  // Replaces the indices: by references to shared parts, and by the other parts themselves.
  void unfold_inner(json& schema) {
    for_each_inner(schema, [this](json& inner, const auto&, const auto&) {
      if (const Part* const part = part_of(inner)) {
        if (part->is_shared) {
          inner["$ref"] = "#/components/schemas/" + part->name;
        } else {
          json unfolded = part->schema;
          inner.erase("$ref");
          unfolded.update(inner);
          inner = std::move(unfolded);
        }
      }
      unfold_inner(inner);
    });
  }

 private:
  struct Part {
    json schema;
    std::string name, owner;
    int num_uses = 0;
    bool is_named = false;
    bool has_title = false;
    bool is_shared = false;
  };

  // Returns the part's name, with its owner's before it or a number after it if it is taken.
  static std::string unused_name(const json& named, const Part& part) {
    if (!named.contains(part.name)) return part.name;
    std::string name = part.owner + part.name;
    if (!named.contains(name)) return name;
    int number = 2;
    while (named.contains(fmt::format("{}{}", name, number))) ++number;
    return fmt::format("{}{}", name, number);
  }

  Part* part_of(const json& schema) {
    const auto reference = schema.find("$ref");
    if (reference == schema.end() || !reference->is_number()) return nullptr;
    return &parts_[reference->get<std::size_t>()];
  }

  Part& intern(json schema, const std::string& owner, const std::string& name) {
    const auto [at, is_new] = indices_.try_emplace(json_text(schema), parts_.size());
    if (is_new) parts_.push_back({std::move(schema), name, owner});
    return parts_[at->second];
  }

  void fold(json& schema, const std::string& owner, std::string name) {
    fold_inner(schema, owner, name);
    const json said = take_said(schema);
    const bool has_title = schema.contains("title");
    if (has_title) name = schema["title"].get<std::string>();
    schema.erase("title");
    if (has_title || json_text(schema).size() >= kMinSharedChars) {
      Part& part = intern(std::move(schema), owner, name);
      if (has_title && !part.is_named) part.name = name;
      part.has_title |= has_title;
      schema = {{"$ref", &part - parts_.data()}};
    }
    schema.update(said);
  }

  // Folds what is within a schema, except what it must not be, which is no type of a client.
  void fold_inner(json& schema, const std::string& owner, const std::string& name) {
    for_each_inner(schema, [&](json& inner, const std::string& keyword, const std::string& of) {
      if (keyword == "not") {
        remove_titles(inner);
      } else {
        fold(inner, owner, keyword == "properties" ? in_capitals(of) : name);
      }
    });
  }

  std::vector<Part> parts_;
  std::map<std::string, std::size_t> indices_;  // by text
};

// Splits the enumeration of a schema, if it has one, or its constant.
void split_values(json& schema) {
  json values = schema.value("enum", json::array());
  if (const auto only = schema.find("const"); only != schema.end()) values.push_back(*only);
  if (values.empty()) return;
  json schemas = one_typed(values);
  for (const char* keyword : {"const", "enum", "type"}) schema.erase(keyword);
  if (schemas.size() == 1) {
    schema.update(schemas.front());
  } else {
    PAGODA_CHECK(!schema.contains("anyOf"), "an enumeration beside anyOf");
    schema["anyOf"] = std::move(schemas);
  }
}

// Splits the types of a schema that has several, if one is that of lists or objects.
void split_type_names(json& schema) {
  const json types = schema.value("type", json());
  const auto is_structured = [](const json& type) { return type == "array" || type == "object"; };
  if (!types.is_array() || std::ranges::none_of(types, is_structured)) return;
  json said = take_said(schema);
  json schemas = json::array();
  for (const json& type : types) {
    json one = type == "null" ? json::object() : schema;
    one["type"] = type;
    schemas.push_back(std::move(one));
  }
  said["anyOf"] = std::move(schemas);
  schema = std::move(said);
}

}  // namespace

void split_types(json& schema) {
  for_each_inner(schema, [](json& inner, const auto&, const auto&) { split_types(inner); });
  split_values(schema);
  split_type_names(schema);
}

void remove_titles(json& schema) {
  for_each_inner(schema, [](json& inner, const auto&, const auto&) { remove_titles(inner); });
  schema.erase("title");
}

void share_parts(json& named) {
  Parts parts;
  for (const auto& [name, schema] : named.items()) parts.add_named(name, schema);
  parts.name_shared(named);
  for (json& schema : named) parts.unfold_inner(schema);
}

}  // namespace pagoda
