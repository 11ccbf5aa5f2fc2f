// The values of tokenizer.ggml.token_type.
#pragma once

namespace pagoda {

inline constexpr int kNormalToken = 1;
inline constexpr int kUnknownToken = 2;
inline constexpr int kControlToken = 3;
inline constexpr int kUserDefinedToken = 4;
inline constexpr int kUnusedToken = 5;
inline constexpr int kByteToken = 6;

}  // namespace pagoda
