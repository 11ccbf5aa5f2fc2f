// JsonScanner: finds the end of a JSON object, list or string in text that arrives byte by byte,
// and tells whether the text is JSON.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda {

// Appends a byte of a string's text to `text`, with the escape that JSON asks for.
void append_escaped(char c, std::string& text);

// If the text is not JSON, brackets and quotes still decide where it ends.
class JsonScanner {
 public:
  // Reads a byte and appends it to `text`; returns whether it is the last one. Models write control
  // characters such as line ends into strings, where JSON allows none: their escapes are appended.
  // REQUIRES: the first byte is '{', '[' or '"'.
  bool feed(char c, std::string& text);

  bool is_in_string() const { return in_string_; }
  // Returns whether the text so far is the beginning of JSON, or the whole of it.
  bool is_valid() const { return is_valid_; }

 private:
  enum class Expected : std::uint8_t {
    kValue,
    kValueOrEnd,
    kKey,
    kKeyOrEnd,
    kColon,
    kCommaOrEnd,
  };

  bool feed_string(char c, std::string& text);
  void end_word();
  void take_value(bool is_valid);
  void open(char c);
  bool close(char c);
  void expect(bool is_as_expected, Expected next);

  Expected expected_ = Expected::kValue;
  std::string open_;  // the brackets not closed yet
  std::string part_;  // the string, number or word being read
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_valid_ = true;
};

}  // namespace pagoda
