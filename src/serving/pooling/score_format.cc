#include "serving/pooling/score_format.h"

#include <algorithm>
#include <cmath>

namespace pagoda {

double ScoreFormat::score(std::span<const float> last_hidden) const {
  const auto logit_of = [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = 0; i < last_hidden.size(); ++i)
      sum += static_cast<double>(weights[row * last_hidden.size() + i]) * last_hidden[i];
    return sum;
  };
  switch (activation) {
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-logit_of(0)));
    case Activation::kSoftmax:
      return 1 / (1 + std::exp(logit_of(1) - logit_of(0)));
    case Activation::kNone:
      return logit_of(0);
  }
  return 0;
}

std::string scored_prompt(std::string_view prompt, std::string_view query,
                          std::string_view document) {
  std::string text;
  while (!prompt.empty()) {
    const std::size_t at = std::min(prompt.find(kQueryPlace), prompt.find(kDocumentPlace));
    text += prompt.substr(0, at);
    if (at == std::string_view::npos) break;
    prompt.remove_prefix(at);
    const bool is_query = prompt.starts_with(kQueryPlace);
    text += is_query ? query : document;
    prompt.remove_prefix((is_query ? kQueryPlace : kDocumentPlace).size());
  }
  return text;
}

}  // namespace pagoda
