// Random words for prompts.
#pragma once

#include <random>
#include <string>

namespace pagoda {

// Returns a common English word.
std::string random_word(std::mt19937_64& random);

// Returns a made-up word of random syllables, because such text has many different tokens.
std::string random_syllables(std::mt19937_64& random);

}  // namespace pagoda
