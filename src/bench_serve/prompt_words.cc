#include "bench_serve/prompt_words.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace pagoda {

namespace {

constexpr std::string_view kWords[] = {
    "a",       "about",    "after",    "again",    "air",     "all",    "along",   "also",
    "always",  "an",       "and",      "answer",   "any",     "are",    "around",  "as",
    "ask",     "at",       "back",     "be",       "because", "before", "begin",   "below",
    "best",    "between",  "big",      "book",     "both",    "boy",    "build",   "but",
    "by",      "call",     "can",      "carry",    "change",  "city",   "close",   "come",
    "could",   "country",  "cut",      "day",      "did",     "do",     "does",    "down",
    "draw",    "each",     "earth",    "eat",      "end",     "even",   "every",   "eye",
    "face",    "family",   "far",      "farm",     "few",     "find",   "first",   "follow",
    "food",    "for",      "form",     "found",    "from",    "garden", "get",     "girl",
    "give",    "go",       "good",     "grow",     "had",     "hand",   "hard",    "has",
    "have",    "head",     "hear",     "help",     "her",     "high",   "him",     "his",
    "home",    "house",    "how",      "if",       "in",      "into",   "is",      "it",
    "just",    "keep",     "kind",     "know",     "land",    "large",  "last",    "late",
    "learn",   "leave",    "left",     "letter",   "life",    "light",  "like",    "line",
    "list",    "little",   "live",     "long",     "look",    "made",   "make",    "man",
    "many",    "may",      "mean",     "men",      "might",   "mile",   "more",    "most",
    "mother",  "mountain", "move",     "much",     "must",    "my",     "name",    "near",
    "need",    "never",    "new",      "next",     "night",   "no",     "not",     "now",
    "number",  "of",       "off",      "often",    "old",     "on",     "one",     "only",
    "open",    "or",       "other",    "our",      "out",     "over",   "own",     "page",
    "paper",   "part",     "people",   "picture",  "place",   "plant",  "play",    "point",
    "press",   "put",      "question", "quick",    "read",    "really", "right",   "river",
    "run",     "said",     "same",     "saw",      "say",     "school", "sea",     "second",
    "see",     "seem",     "sentence", "set",      "she",     "should", "show",    "side",
    "small",   "so",       "some",     "song",     "soon",    "sound",  "spell",   "stand",
    "start",   "state",    "still",    "stop",     "story",   "study",  "such",    "take",
    "talk",    "tell",     "than",     "that",     "the",     "their",  "them",    "then",
    "there",   "these",    "they",     "thing",    "think",   "this",   "thought", "three",
    "through", "time",     "to",       "together", "too",     "took",   "tree",    "try",
    "turn",    "two",      "under",    "until",    "up",      "us",     "use",     "very",
    "walk",    "want",     "was",      "watch",    "water",   "way",    "we",      "well",
    "went",    "were",     "what",     "when",     "where",   "which",  "while",   "white",
    "who",     "why",      "will",     "with",     "without", "word",   "work",    "world",
    "would",   "write",    "year",     "you",      "young",   "your"};

constexpr std::string_view kOnsets[] = {"b", "br", "c",  "ch", "cl", "d",  "dr", "f",  "g",  "gr",
                                        "h", "j",  "k",  "l",  "m",  "n",  "p",  "pl", "pr", "qu",
                                        "r", "s",  "sh", "st", "t",  "th", "tr", "v",  "w",  "z"};
constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u", "ai", "ea", "ee", "ou", "y"};
constexpr std::string_view kCodas[] = {"",   "l", "m",  "n", "nd", "ng", "nt", "r",
                                       "rs", "s", "st", "t", "ck", "x",  "d",  "sm"};

template <std::size_t kCount>
std::string_view pick(const std::string_view (&words)[kCount], std::mt19937_64& random) {
  return words[std::uniform_int_distribution<std::size_t>(0, kCount - 1)(random)];
}

}  // namespace

std::string random_word(std::mt19937_64& random) {
  return std::string(pick(kWords, random));
}

std::string random_syllables(std::mt19937_64& random) {
  std::string word;
  const int num_syllables = std::uniform_int_distribution<int>(1, 3)(random);
  for (int i = 0; i < num_syllables; ++i) {
    word += pick(kOnsets, random);
    word += pick(kVowels, random);
    word += pick(kCodas, random);
  }
  return word;
}

}  // namespace pagoda
