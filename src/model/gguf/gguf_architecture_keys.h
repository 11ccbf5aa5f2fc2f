// ArchitectureKeys: typed, bounded reading of a GGUF file's keys that begin with its architecture.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "model/config_limits.h"
#include "weights/gguf.h"

namespace pagoda {

// Reads "<architecture>.<key>", checked against a range.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key) const { return file_.has(name(key)); }

  Result<int> integer(std::string_view key, IntegerRange range) const {
    PAGODA_ASSIGN_OR_RETURN(const std::int64_t value, file_.integer(name(key)));
    return in_range(key, value, range);
  }
  Result<int> integer_or(std::string_view key, IntegerRange range, int otherwise) const {
    if (!has(key)) return otherwise;
    return integer(key, range);
  }
  Result<double> number(std::string_view key, NumberRange range) const {
    PAGODA_ASSIGN_OR_RETURN(const double value, file_.number(name(key)));
    if (!(value >= range.min && value <= range.max)) {
      return data_loss("[gguf] key {}: expected {} to {}, got {}", name(key), range.min, range.max,
                       value);
    }
    return value;
  }
  Result<double> number_or(std::string_view key, NumberRange range, double otherwise) const {
    if (!has(key)) return otherwise;
    return number(key, range);
  }
  // Reads an integer for each layer: an array with one for each, or a single one for all layers.
  Result<std::vector<int>> layer_integers(std::string_view key, IntegerRange range,
                                          int num_layers) const {
    const auto array = file_.integers(name(key));
    if (!array.ok()) {
      PAGODA_ASSIGN_OR_RETURN(const int value, integer(key, range));
      return std::vector<int>(num_layers, value);
    }
    if (static_cast<int>(array->size()) != num_layers) {
      return data_loss("[gguf] key {}: expected a value for each of {} layers, got {}", name(key),
                       num_layers, array->size());
    }
    std::vector<int> values;
    for (const std::int64_t value : *array) {
      PAGODA_ASSIGN_OR_RETURN(const int checked, in_range(key, value, range));
      values.push_back(checked);
    }
    return values;
  }

 private:
  Result<int> in_range(std::string_view key, std::int64_t value, IntegerRange range) const {
    if (value < range.min || value > range.max) {
      return data_loss("[gguf] key {}: expected {} to {}, got {}", name(key), range.min, range.max,
                       value);
    }
    return static_cast<int>(value);
  }

  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace pagoda
