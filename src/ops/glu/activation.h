// Activation: the function of an MLP's gate. A checkpoint names it, and the op is told it.
#pragma once

#include <cstdint>
#include <string_view>

namespace pagoda {

enum class Activation : std::uint8_t {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

// Returns "silu", "gelu_tanh".
constexpr std::string_view activation_name(Activation activation) {
  return activation == Activation::kSilu ? "silu" : "gelu_tanh";
}

}  // namespace pagoda
