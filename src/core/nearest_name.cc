#include "core/nearest_name.h"

#include <algorithm>
#include <cctype>

namespace pagoda {

namespace {

constexpr std::size_t kMaxLength = 200;  // of compared names: the time is quadratic in it

std::string lower_case(std::string_view text) {
  std::string lower(text.substr(0, kMaxLength));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Returns the Damerau-Levenshtein distance in which no letter moves twice (optimal string
// alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        steps[i][j] = i + j;
        continue;
      }
      const std::size_t changed = steps[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      steps[i][j] = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view typed,
                                        const std::vector<std::string>& names) {
  const std::string lower = lower_case(typed);
  std::optional<std::string> nearest;
  std::size_t least = lower.size() / 3 + 1;
  for (const std::string& name : names) {
    const std::size_t steps = distance(lower, lower_case(name));
    if (steps >= least) continue;
    least = steps;
    nearest = name;
  }
  return nearest;
}

}  // namespace pagoda
