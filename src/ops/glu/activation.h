// Activation: the function of an MLP's gate. A checkpoint names it, and the op is told it.
#pragma once

#include <cstdint>
#include <string_view>

namespace pagoda {

enum class Activation : std::uint8_t {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  // gpt-oss's: x / (1 + exp(-alpha * x)). Gates are cut off above a limit, and up parts at both
  // ends; then 1 is added to up parts. NaN stays NaN.
  kSwigluOai,
};

// Returns "silu", "gelu_tanh", "swiglu_oai".
constexpr std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kSwigluOai:
      return "swiglu_oai";
  }
  return "";
}

// How a gated MLP joins its gate and its up part.
struct GluArgs {
  Activation activation = Activation::kSilu;
  float alpha = 1.702f;  // of kSwigluOai alone
  float limit = 7;       // likewise; positive

  bool operator==(const GluArgs&) const = default;
};

}  // namespace pagoda
