#include "answer/schema_types.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/json.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

// References may form cycles, or double at each step.
constexpr int kMaxVisits = 256;

JsonTypes type_of(const Json& value) {
  if (value.is_string()) return kStringType;
  if (value.is_number()) return kNumberType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_null()) return kNullType;
  return value.is_object() ? kObjectType : kArrayType;
}

JsonTypes named_type(const Json& name) {
  constexpr std::pair<std::string_view, JsonTypes> kNames[] = {
      {"string", kStringType},   {"number", kNumberType}, {"integer", kNumberType},
      {"boolean", kBooleanType}, {"null", kNullType},     {"object", kObjectType},
      {"array", kArrayType}};
  if (!name.is_string()) return 0;
  for (const auto& [text, type] : kNames) {
    if (name.get_ref<const std::string&>() == text) return type;
  }
  return 0;
}

// Returns the union of what `types_of_one` returns for each element of a list, or for a value that
// is no list.
template <typename TypesOfOne>
JsonTypes any_of(const Json& list, const TypesOfOne& types_of_one) {
  if (!list.is_array()) return types_of_one(list);
  JsonTypes types = 0;
  for (const Json& each : list) types |= types_of_one(each);
  return types;
}

// Returns a key of a JSON pointer without its escapes.
std::string unescaped(std::string_view key) {
  std::string text;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool is_escape = key[i] == '~' && i + 1 < key.size();
    if (is_escape) ++i;
    text += is_escape ? (key[i] == '1' ? '/' : '~') : key[i];
  }
  return text;
}

// Returns the schema that `schema` refers to by $ref within `root`; null: it has no such reference.
const Json* referred_schema(const Json& schema, const Json& root) {
  const auto reference = schema.is_object() ? schema.find("$ref") : schema.end();
  if (!schema.is_object() || reference == schema.end() || !reference->is_string()) return nullptr;
  std::string_view path = reference->get_ref<const std::string&>();
  if (!path.starts_with('#')) return nullptr;
  path.remove_prefix(1);
  const Json* found = &root;
  while (!path.empty()) {
    if (path.front() != '/') return nullptr;
    path.remove_prefix(1);
    const std::string_view key = path.substr(0, path.find('/'));
    path.remove_prefix(key.size());
    if (!found->is_object()) return nullptr;
    const auto next = found->find(unescaped(key));
    if (next == found->end()) return nullptr;
    found = &*next;
  }
  return found;
}

class TypeFinder {
 public:
  explicit TypeFinder(const Json& root) : root_(root) {}

  JsonTypes find(const Json& schema) {
    if (!schema.is_object() || --num_visits_left_ < 0) return kAnyType;
    const auto find_one = [this](const Json& each) { return find(each); };
    JsonTypes types = kAnyType;
    for (const auto& [key, value] : schema.items()) {
      if (key == "type") types &= any_of(value, named_type);
      if (key == "enum") types &= any_of(value, type_of);
      if (key == "const") types &= type_of(value);
      if (key == "anyOf" || key == "oneOf") types &= any_of(value, find_one);
      if (key != "allOf" || !value.is_array()) continue;
      for (const Json& each : value) types &= find(each);
    }
    if (const Json* referred = referred_schema(schema, root_)) types &= find(*referred);
    return types == 0 ? kAnyType : types;
  }

 private:
  const Json& root_;
  int num_visits_left_ = kMaxVisits;
};

class ChoiceFinder {
 public:
  explicit ChoiceFinder(const Json& root) : root_(root) {}

  // Appends a schema's choices; returns whether it lists all that it allows.
  bool find(const Json& schema, std::vector<std::string>& choices) {
    if (!schema.is_object() || --num_visits_left_ < 0) return false;
    if (const Json* referred = referred_schema(schema, root_)) return find(*referred, choices);
    for (const auto& [key, value] : schema.items()) {
      if (key == "const") return add(value, choices);
      if (key == "enum" && value.is_array())
        return std::all_of(value.begin(), value.end(),
                           [&](const Json& each) { return add(each, choices); });
      if (key == "type" && value == "null") return add(Json(), choices);
      if ((key == "anyOf" || key == "oneOf") && value.is_array())
        return std::all_of(value.begin(), value.end(),
                           [&](const Json& each) { return find(each, choices); });
    }
    return false;
  }

 private:
  static bool add(const Json& value, std::vector<std::string>& choices) {
    if (value.is_string()) choices.push_back(value.get<std::string>());
    if (value.is_null()) choices.emplace_back("null");
    return true;
  }

  const Json& root_;
  int num_visits_left_ = kMaxVisits;
};

}  // namespace

JsonTypes types_of(const OrderedJson& schema, const OrderedJson& root) {
  return TypeFinder(root).find(schema);
}

std::optional<std::vector<std::string>> string_choices_of(const OrderedJson& schema,
                                                          const OrderedJson& root) {
  std::vector<std::string> choices;
  if (!ChoiceFinder(root).find(schema, choices)) return {};
  return choices;
}

}  // namespace pagoda
