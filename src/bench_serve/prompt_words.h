// Words that prompts are made of.
#pragma once

#include <random>
#include <string>

namespace pagoda {

// Returns a common English word.
std::string random_word(std::mt19937_64& random);

// Returns a word of syllables that is none: text whose tokens are many and various.
std::string random_syllables(std::mt19937_64& random);

}  // namespace pagoda
