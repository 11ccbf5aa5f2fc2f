#include "model/key_rules.h"

#include <algorithm>
#include <string>

#include "core/json.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

bool matches(const HfKeyRule& row, std::string_view key) {
  if (!row.key.ends_with('*')) return row.key == key;
  return key.starts_with(row.key.substr(0, row.key.size() - 1));
}

bool is_allowed(const HfKeyRule& row, const nlohmann::json& value) {
  if (row.rule != HfRule::kOnly) return true;
  const auto values = parse_json(row.values);
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Returns the first row that matches the key, or null.
const HfKeyRule* find_rule(std::span<const HfKeyRule> rows, std::string_view key) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [key](const HfKeyRule& each) { return matches(each, key); });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

Status check_keys(const JsonFields& fields, std::span<const HfKeyRule> rows,
                  const OtherKeys& others) {
  for (const auto& [key, value] : fields.json().items()) {
    if (value.is_null()) continue;  // null counts as absent
    if (others.family != nullptr && others.family->reads(key)) continue;
    const HfKeyRule* row = find_rule(rows, key);
    if (row == nullptr) {
      row = find_rule(others.more, key);
      if (row != nullptr && row->rule == HfRule::kRead) row = nullptr;
    }
    if (row == nullptr) {
      return unsupported(
          "[config] {}: key {} is not known and may change what the model computes; take it out of "
          "the file if it does not",
          fields.where(), printable(key, 60));
    }
    if (is_allowed(*row, value)) continue;
    return unsupported("[config] {}: {} {} is not supported", fields.where(), key,
                       printable(json_text(value), 40));
  }
  return ok_status();
}

}  // namespace pagoda
