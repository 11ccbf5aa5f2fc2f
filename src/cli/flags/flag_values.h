// Checks of a flag's value. They refuse in a user's words,
//   pagoda: --port: expected a whole number of 0 to 65535, got 70000
// and rewrite numbers for the parser, which would read "010" as eight and would not read "8k".
//
// Every flag with a number or a choice has one of these checks, by ->transform() (numbers) or
// ->check().
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Reads "8192", "8k" (thousands), "8K" or "8KiB" (times 1024), "0.5M", "4G", "512MB" and so on: k,
// m, g and t count in thousands, as do KB, MB, GB and TB; K, M, G, T and KiB, MiB, GiB, TiB in
// steps of 1024, as in vLLM. Returns nothing for other text, a number that is not whole, or one
// above 2^53.
std::optional<std::int64_t> parse_amount(std::string_view text);

// Returns names as a list: "auto, cpu or mlx".
std::string listed(const std::vector<std::string>& names);
// Returns the names in a list that listed() made.
std::vector<std::string> names_listed(std::string_view list);

// The type_name() of flags and arguments that name a file or a folder; shells complete these as
// paths.
inline constexpr const char* kPathType = "PATH";
// The type_name() of arguments that name a model: a file, a folder, or a model of the store.
inline constexpr const char* kModelType = "PATH|NAME";
// The type_name() of arguments that name a model of the store.
inline constexpr const char* kStoredModelType = "NAME";
// Returns whether a value of this type may be a file's name.
bool may_be_path(std::string_view type);

CLI::Validator one_of(std::vector<std::string> names);
CLI::Validator real_number(double least = -std::numeric_limits<double>::infinity(),
                           double most = std::numeric_limits<double>::infinity());
// Checks the path of a URL, and rewrites "/" to "" and "/llm/" to "/llm". Its parts have letters,
// digits and "-._~", and none is "." or "..".
CLI::Validator path_prefix();

namespace flag_values {

// Returns the decimal digits of a whole number, without leading zeros; also of a number that only
// parse_amount() reads. "" if the text is not a whole number.
std::string plain_digits(std::string_view text);

template <std::integral T>
std::string range_words(T least, T most) {
  using Limits = std::numeric_limits<T>;
  if (least == Limits::min() && most == Limits::max() && least != 0) return "a whole number";
  if (sizeof(T) == 8 && most == Limits::max())
    return fmt::format("a whole number of {} or more", least);
  return fmt::format("a whole number of {} to {}", least, most);
}

}  // namespace flag_values

template <std::integral T>
CLI::Validator whole_number(T least = std::numeric_limits<T>::min(),
                            T most = std::numeric_limits<T>::max()) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::string digits = flag_values::plain_digits(text);
        T value{};
        const char* end = digits.data() + digits.size();
        const auto read = std::from_chars(digits.data(), end, value);
        if (digits.empty() || read.ec != std::errc() || read.ptr != end || value < least ||
            value > most) {
          return fmt::format("expected {}, got {}", flag_values::range_words(least, most), text);
        }
        text = digits;
        return {};
      },
      "");
}

}  // namespace pagoda
