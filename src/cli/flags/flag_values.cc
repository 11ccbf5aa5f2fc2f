#include "cli/flags/flag_values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

namespace pagoda {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kMaxPathPrefix = 256;
constexpr double kMostExact = 9007199254740992.0;  // 2^53

struct Unit {
  std::string_view text;
  double factor;
};

constexpr double kThousand = 1e3, kBinary = 1024;
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"k", kThousand},
                           {"m", kThousand* kThousand},
                           {"g", kThousand* kThousand* kThousand},
                           {"t", kThousand* kThousand* kThousand* kThousand},
                           {"kB", kThousand},
                           {"KB", kThousand},
                           {"MB", kThousand* kThousand},
                           {"GB", kThousand* kThousand* kThousand},
                           {"TB", kThousand* kThousand* kThousand* kThousand},
                           {"K", kBinary},
                           {"M", kBinary* kBinary},
                           {"G", kBinary* kBinary* kBinary},
                           {"T", kBinary* kBinary* kBinary* kBinary},
                           {"KiB", kBinary},
                           {"MiB", kBinary* kBinary},
                           {"GiB", kBinary* kBinary* kBinary},
                           {"TiB", kBinary* kBinary* kBinary* kBinary}};

// Parses a decimal number, or inf.
std::optional<double> parse_real(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text.find_first_of(kDigits) == std::string_view::npos ||
      text.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
    return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_amount(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = parse_real(text.substr(0, end));
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                 [&](const Unit& each) { return each.text == text.substr(end); });
  if (!number || unit == std::end(kUnits)) return std::nullopt;
  const double value = *number * unit->factor;
  if (value >= kMostExact || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::vector<std::string> names_listed(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(", "), list.size());
    const std::size_t last = list.find(" or ");
    const std::size_t end = std::min(comma, last);
    names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + (end == comma ? 2 : 4)));
  }
  return names;
}

bool may_be_path(std::string_view type) {
  return type == kPathType || type == kModelType;
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string words = listed(names);
  return CLI::Validator(
      [names = std::move(names), words](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) return {};
        return fmt::format("expected {}, got {}", words, text);
      },
      words);
}

CLI::Validator real_number(double least, double most) {
  std::string words = "a number";
  if (std::isfinite(least) && std::isfinite(most)) {
    words = fmt::format("a number of {} to {}", least, most);
  } else if (std::isfinite(least)) {
    words = fmt::format("a number of {} or more", least);
  }
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<double> value = parse_real(text);
        if (value && *value >= least && *value <= most) return {};
        return fmt::format("expected {}, got {}", words, text);
      },
      "");
}

std::string flag_values::plain_digits(std::string_view text) {
  if (const auto value = parse_amount(text)) return std::to_string(*value);
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos) return {};
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return (is_negative && text != "0" ? "-" : "") + std::string(text);
}

CLI::Validator path_prefix() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        static const std::regex form(R"((/(?!\.\.?(/|$))[A-Za-z0-9._~-]+)*/?)");
        if (text.size() > kMaxPathPrefix || text.empty() || !std::regex_match(text, form))
          return fmt::format("expected a path such as /llm, got {}", text);
        if (text.back() == '/') text.pop_back();
        return {};
      },
      "");
}

}  // namespace pagoda
