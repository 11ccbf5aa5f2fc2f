// JsonFields: typed, bounded reading of a JSON object's keys, with messages that name the file and
// the key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/status.h"
#include "model/config_limits.h"

namespace pagoda {

// A view: the JSON must outlive it. A key whose value is null counts as absent.
class JsonFields {
 public:
  // Reads `object`; `where` begins each message: "config.json", or "config.json: rope_scaling".
  JsonFields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  bool has(const char* key) const { return find(key) != nullptr; }
  // Returns whether the key is present with the value null.
  bool is_null(const char* key) const;
  // Returns the value of a key; null if absent.
  const nlohmann::json* find(const char* key) const;

  // Reads a number. kInvalidArgument: absent, another type, or outside the range. An integer may be
  // written 2048.0.
  Result<int> integer(const char* key, IntegerRange range) const;
  Result<double> number(const char* key, NumberRange range) const;
  Result<std::string> text(const char* key) const;
  // Reads an array of integers, or one integer alone; empty if absent.
  Result<std::vector<std::int64_t>> integers(const char* key, IntegerRange range) const;

  // Reads an array of numbers; empty if absent.
  Result<std::vector<double>> numbers(const char* key, NumberRange range) const;

  Result<int> integer_or(const char* key, IntegerRange range, int otherwise) const;
  Result<double> number_or(const char* key, NumberRange range, double otherwise) const;
  Result<bool> boolean_or(const char* key, bool otherwise) const;
  Result<std::string> text_or(const char* key, std::string_view otherwise) const;

  // Returns the object under a key; its messages name the key too. kInvalidArgument: it is no
  // object.
  Result<JsonFields> object(const char* key) const;

  const nlohmann::json& json() const { return object_; }

  Status wrong(const char* key, std::string_view expected) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

// Parses a whole text that must be a JSON object. Values nested deeper than eight levels are
// dropped. kDataLoss names `where`, and the line and column of the error.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view where);

}  // namespace pagoda
