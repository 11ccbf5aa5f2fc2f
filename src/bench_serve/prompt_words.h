// Words that prompts are made of.
#pragma once

#include <random>
#include <string>

namespace pagoda {

// A common English word.
std::string random_word(std::mt19937_64& random);

// A word that is none, of syllables: text whose tokens are many and various.
std::string random_syllables(std::mt19937_64& random);

}  // namespace pagoda
