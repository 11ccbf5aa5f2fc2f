// A request's fields as a table: each is declared once, and the same declaration reads it from JSON
// and describes it in /openapi.json.
//
// A request is a struct whose members hold their defaults, and a function that lists its fields as
// pointers into it:
//
//   std::vector<Field> fields(CompletionRequest& request) {
//     return {{.name = "top_p", .target = &request.top_p, .range = {.minimum = 0,
//     .exclusive_minimum = true, .maximum = 1}}};
//   }
//
// null stands for a field that was not sent. A wrong type or a value out of range is an ApiError
// with the field's name.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/base/api_error.h"
#include "server/base/request_json.h"

namespace pagoda {

struct FieldRange {
  double minimum = -std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;
  double maximum = std::numeric_limits<double>::infinity();
  std::span<const int> values = {};  // of an integer: these alone, where there are any
};

// How long a string, a list and a list's strings may be. Characters are Unicode's code points, as
// in JSON Schema.
struct FieldSize {
  std::size_t max_chars = 0;  // of a string
  std::size_t min_chars = 0;  // of a list's string
  std::size_t max_items = 0;  // of a list
  std::size_t min_items = 0;
};

// A field of a shape of its own. `read` gets anything but null.
struct CustomField {
  // `name`: the one of the field's names that was sent.
  std::function<std::optional<ApiError>(std::string_view name, const RequestJson& value)> read;
  std::string_view schema;  // JSON Schema of what it takes beside null, as JSON text
};

// Would change the answer, and nothing here supports it: only values that ask for nothing are
// accepted.
struct RefusedField {
  // A JSON list of them, beside null.
  std::string_view neutral = R"([false, [], {}, ""])";
  std::string_view instead = {};  // what to do about it, for the refusal
};

// Accepted whatever it is; changes nothing.
struct IgnoredField {};

using FieldTarget =
    std::variant<bool*, int*, std::optional<int>*, std::optional<std::int64_t>*, float*,
                 std::optional<float>*, std::string*, std::optional<std::string>*,
                 std::vector<int>*, std::vector<std::string>*, CustomField, RefusedField,
                 IgnoredField>;

// Bounds that only the served model knows; they are checked where it is at hand, and
// openapi_document() writes them into the schema in place of the format.
inline constexpr std::string_view kTokenIdFormat = "token-id";       // below the vocabulary's size
inline constexpr std::string_view kTokenKeyFormat = "token-id-key";  // the same, as an object's key
inline constexpr std::string_view kTokenCountFormat = "token-count";        // within the context
inline constexpr std::string_view kEmbeddingSizeFormat = "embedding-size";  // within an embedding
inline constexpr std::string_view kPromptNameFormat = "prompt-name";  // one of the checkpoint's
inline constexpr std::string_view kModelFormat = "served-model";      // one of the names served

struct Field {
  std::string_view name;
  FieldTarget target;
  FieldRange range = {};  // of a number, or of a list's numbers
  FieldSize size = {};
  std::string_view format = {};  // one of the above; of a list's items where it is a list
  std::string_view description = {};
  std::string_view from = {};  // the server whose name it is; none: OpenAI's
  // Names that mean the same. Two of them with different values contradict one another.
  std::vector<std::string_view> aliases = {};
  bool required = false;
};

// Reads `object`, a JSON object, through the table. Names that are not in it are appended to
// `unknown_names`.
std::optional<ApiError> read_fields(const RequestJson& object, const std::vector<Field>& fields,
                                    std::vector<std::string>& unknown_names);
// Does the same with a request's body. Errors besides are parse_json_body()'s.
std::optional<ApiError> read_body_fields(std::string_view body, const std::vector<Field>& fields,
                                         std::vector<std::string>& unknown_names);

// Reads an object within a field, such as "messages[2]": errors name the place
// ("'messages[2].role': ..."), as does their param. Other names in it are left alone.
std::optional<ApiError> read_inner_fields(const RequestJson& object,
                                          const std::vector<Field>& fields, std::string_view place);

// Returns the JSON Schema of such an object; defaults are what the targets hold now. What no single
// field shows stands in its `not`, a list of contradictions: two names of one field, and what
// add_rule() adds.
nlohmann::json fields_schema(const std::vector<Field>& fields);
// Adds that such an object is taken only where `rule` holds, a JSON Schema.
void add_rule(nlohmann::json& schema, nlohmann::json rule);
// Adds that of two fields at most one may be there, unless one of them is null.
void add_rule_against_both(nlohmann::json& schema, std::string_view a, std::string_view b);

// Returns the error "'top_p': expected a number, got a string": for custom fields, and how the
// table's own errors read.
ApiError wrong_type(std::string_view param, std::string_view expected, const RequestJson& got);
// Makes a field of a shape of its own, which `read` takes into `request`.
template <typename Request>
Field custom_field(std::string_view name, Request& request,
                   std::optional<ApiError> (*read)(const RequestJson& value, Request& request),
                   std::string_view schema) {
  return {.name = name,
          .target = CustomField{[&request, read](std::string_view, const RequestJson& value) {
                                  return read(value, request);
                                },
                                schema}};
}

// Returns the value of a key of an object; null where it is not there.
const RequestJson& value_of(const RequestJson& object, std::string_view key);
// Returns "a string", "an object", for messages.
std::string_view type_in_words(const RequestJson& value);

// Reads a list within a Field's range and size, for custom fields.
std::optional<ApiError> read_ints(const Field& field, const RequestJson& value,
                                  std::vector<int>& out);
std::optional<ApiError> read_strings(const Field& field, const RequestJson& value,
                                     std::vector<std::string>& out);

}  // namespace pagoda
