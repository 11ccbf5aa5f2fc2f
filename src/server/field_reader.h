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
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api_error.h"
#include "server/request_json.h"

namespace pagoda {

struct FieldRange {
  double minimum = -std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;
  double maximum = std::numeric_limits<double>::infinity();
};

// A field of a shape of its own. `read` gets anything but null.
struct CustomField {
  std::function<std::optional<ApiError>(const RequestJson& value)> read;
  std::string_view schema;  // JSON Schema, as JSON text
};

// Would change the answer, and nothing here supports it: only a neutral value is accepted (null,
// false, [], {}, "" and `also_neutral`, as JSON text).
struct RefusedField {
  std::string_view also_neutral;
};

// Accepted whatever it is; changes nothing.
struct IgnoredField {};

using FieldTarget =
    std::variant<bool*, int*, std::optional<int>*, std::optional<std::int64_t>*, float*,
                 std::optional<float>*, std::string*, std::vector<int>*, std::vector<std::string>*,
                 CustomField, RefusedField, IgnoredField>;

struct Field {
  std::string_view name;
  FieldTarget target;
  FieldRange range;  // of a number, or of a list's numbers
  std::string_view description;
  bool required = false;
};

// Reads `object`, a JSON object, through the table. Names that are not in it are appended to
// `unknown_names`.
std::optional<ApiError> read_fields(const RequestJson& object, const std::vector<Field>& fields,
                                    std::vector<std::string>& unknown_names);

// The JSON Schema of such an object; defaults are what the targets hold now. Refused fields are
// left out.
nlohmann::json fields_schema(const std::vector<Field>& fields);

// "'top_p': expected a number, got a string": for custom fields, and how the table's own errors
// read.
ApiError wrong_type(std::string_view param, std::string_view expected, const RequestJson& got);
// "a string", "an object", for messages.
std::string_view type_in_words(const RequestJson& value);

// A list of token ids (or of other ints), for custom fields.
std::optional<ApiError> read_ints(std::string_view param, const RequestJson& value,
                                  const FieldRange& range, std::vector<int>& out);

}  // namespace pagoda
