// A request's fields as a table: each is declared once, and the same declaration reads it from JSON
// and describes it in /openapi.json.
//
// A request is a struct, whose members begin with their defaults. A function lists its fields as
// pointers into the struct:
//
//   std::vector<Field> fields(CompletionRequest& request) {
//     return {{.name = "top_p", .target = &request.top_p, .range = {.minimum = 0,
//     .exclusive_minimum = true, .maximum = 1}}};
//   }
//
// A null in the body means that the field was not sent. A wrong type or a value out of range is an
// ApiError with the field's name.
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
  std::span<const int> values = {};  // the only values of an integer; empty: all in the range
  bool saturates = false;  // an integer of 64 bits above every int is read as the largest int
};

// Bounds of the length of a string, of a list, and of a list's strings. Characters are Unicode's
// code points, as in JSON Schema.
struct FieldSize {
  std::size_t max_chars = 0;  // of a string, or of each string in a list
  std::size_t min_chars = 0;  // of each string in a list
  std::size_t max_items = 0;  // of a list
  std::size_t min_items = 0;
};

// A field with a reader and a schema of its own. `read` gets any value except null.
struct CustomField {
  // `name`: the field's name or the alias that was sent.
  std::function<std::optional<ApiError>(std::string_view name, const RequestJson& value)> read;
  std::string_view schema;  // JSON Schema of the accepted values besides null
};

// A field that would change the answer but is not supported. Only neutral values, which ask for
// nothing, are accepted.
struct RefusedField {
  // The neutral values besides null, as a JSON list.
  std::string_view neutral = R"([false, [], {}, ""])";
  std::string_view instead = {};  // what to use instead, or the reason, for the error message
};

// The reason why a request with an image is refused, whatever its API.
inline constexpr std::string_view kImagesAreNotRead = "images are not read, only texts";

// A field that is ignored, whatever its value.
struct IgnoredField {};

using FieldTarget =
    std::variant<bool*, int*, std::optional<int>*, std::optional<std::int64_t>*, float*,
                 std::optional<float>*, std::string*, std::optional<std::string>*,
                 std::vector<int>*, std::vector<std::string>*, CustomField, RefusedField,
                 IgnoredField>;

// Formats for bounds that depend on the served model. The bounds are checked where the model is
// known. openapi_document() replaces the formats by them.
inline constexpr std::string_view kTokenIdFormat = "token-id";        // below the vocabulary's size
inline constexpr std::string_view kTokenKeyFormat = "token-id-key";   // a token id as a key
inline constexpr std::string_view kTokenCountFormat = "token-count";  // up to the context's length
inline constexpr std::string_view kEmbeddingSizeFormat = "embedding-size";  // up to the full size
inline constexpr std::string_view kPromptNameFormat = "prompt-name";        // in the checkpoint
inline constexpr std::string_view kModelFormat = "served-model";            // a served model's name

struct Field {
  std::string_view name;
  FieldTarget target;
  FieldRange range = {};  // of a number, or of a list's numbers
  FieldSize size = {};
  std::string_view format = {};  // one of the formats above; for a list: of its items
  std::string_view description = {};
  std::string_view from = {};  // the server that has this name; empty: OpenAI
  // Other names of the field. Two names with different values contradict each other.
  std::vector<std::string_view> aliases = {};
  bool required = false;
};

// Reads `object`, a JSON object, by the table. Names that are not in the table are appended to
// `unknown_names`.
std::optional<ApiError> read_fields(const RequestJson& object, const std::vector<Field>& fields,
                                    std::vector<std::string>& unknown_names);
// Does the same with a request's body, which it parses first. Errors are also parse_json_body()'s.
std::optional<ApiError> read_body_fields(std::string_view body, const std::vector<Field>& fields,
                                         std::vector<std::string>& unknown_names);

// Reads an object within a field, such as "messages[2]". Errors and their `param` name the place
// ("'messages[2].role': ..."). Names that are not in the table are ignored.
std::optional<ApiError> read_inner_fields(const RequestJson& object,
                                          const std::vector<Field>& fields, std::string_view place);

// Returns the JSON Schema of an object with these fields, with the targets' values as defaults. Its
// `not` lists contradictions: two names of one field, and the rules of add_rule().
nlohmann::json fields_schema(const std::vector<Field>& fields);
// Adds a rule to an object's schema: the object is accepted only if it matches `rule`, a schema.
void add_rule(nlohmann::json& schema, nlohmann::json rule);
// Adds the rule that at most one of two fields may be there with a value other than null.
void add_rule_against_both(nlohmann::json& schema, std::string_view a, std::string_view b);

// Returns the error "'top_p': expected a number, got a string". Custom fields report wrong types
// with it, so that their errors read like those of other fields.
ApiError wrong_type(std::string_view param, std::string_view expected, const RequestJson& got);
// Makes a CustomField: `read` checks its value and stores it in `request`.
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

// Returns the value of a key of an object; null if the key is missing.
const RequestJson& value_of(const RequestJson& object, std::string_view key);
// Returns a value's type for messages: "a string", "an object".
std::string_view type_in_words(const RequestJson& value);

// Reads a list, and checks it against the field's range and size. For custom fields.
std::optional<ApiError> read_ints(const Field& field, const RequestJson& value,
                                  std::vector<int>& out);
std::optional<ApiError> read_strings(const Field& field, const RequestJson& value,
                                     std::vector<std::string>& out);

}  // namespace pagoda
