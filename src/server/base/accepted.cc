#include "server/base/accepted.h"

#include <algorithm>
#include <string>
#include <vector>

#include "server/base/http_message.h"

namespace pagoda {
namespace {

// Returns the parts between the separators, without white space around them.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  constexpr std::string_view kSpace = " \t";
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    part.remove_prefix(std::min(part.find_first_not_of(kSpace), part.size()));
    part = part.substr(0, part.find_last_not_of(kSpace) + 1);
    parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads "0", "0.5", "1", "1.000".
double weight_of(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return -1;
  double weight = text[0] - '0';
  double scale = 1;
  text.remove_prefix(1);
  if (text.starts_with('.')) text.remove_prefix(1);
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return -1;
    weight = weight * 10 + (digit - '0');
    scale *= 10;
  }
  weight /= scale;
  return weight <= 1 ? weight : -1;
}

}  // namespace

double accepted_weight(std::string_view header, std::string_view name) {
  double best = -1;
  for (const std::string_view item : parts_of(header, ',')) {
    const std::vector<std::string_view> parts = parts_of(item, ';');
    if (lower_case(parts.front()) != name) continue;
    double weight = 1;
    for (const std::string_view parameter : parts) {
      if (lower_case(parameter).starts_with("q=")) weight = weight_of(parameter.substr(2));
    }
    best = std::max(best, weight);
  }
  return best;
}

}  // namespace pagoda
