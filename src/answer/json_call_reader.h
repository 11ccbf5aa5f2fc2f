// Calls as JSON: one object with a name and arguments, or a list of them.
//
// Arguments are told as they come, byte for byte as the model writes them, where the name stands
// before them, as every template has it; otherwise at the object's end.
#pragma once

#include <string>

#include "answer/call_reader.h"

namespace pagoda {

// Follows a JSON object, list or string to its end. It checks no more than that: what stands
// outside of strings is a character that JSON has there, and brackets close what they opened.
class JsonEndFinder {
 public:
  CallReader::State feed(char c);

 private:
  std::string open_;  // the brackets that are open
  bool in_string_ = false;
  bool is_escaped_ = false;
};

class JsonCallReader : public CallReader {
 public:
  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  enum class Place {
    kBeginning,  // of the list or the object
    kBeforeObject,
    kBeforeKey,
    kInKey,
    kBehindKey,
    kBeforeValue,
    kInValue,
    kInWord,  // a number, true, false or null
    kBehindValue,
    kBehindObject,
  };

  State begin(char c);
  State begin_object(char c);
  State begin_key(char c);
  State end_key(char c);
  State begin_value(char c, std::vector<AnswerPart>& parts);
  State take_value(char c, std::vector<AnswerPart>& parts);
  State take_word(char c, std::vector<AnswerPart>& parts);
  State end_value();
  State behind_value(char c, std::vector<AnswerPart>& parts);
  State end_object(std::vector<AnswerPart>& parts);
  State behind_object(char c);

  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  Place place_ = Place::kBeginning;
  bool is_list_ = false;
  JsonEndFinder finder_;
  std::string text_;  // of the key or value being read
  std::string key_;
  std::string name_;
  std::string arguments_;      // that have not been told
  bool is_streaming_ = false;  // the value being read is told as it comes
  bool is_told_ = false;       // the call's name has been told, and its arguments have been begun
};

// A function's name, [ARGS], and an object (Mistral's tokenizers from version 11 on).
class NamedCallReader : public CallReader {
 public:
  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  std::string name_;
  bool has_name_ = false;
  bool has_begun_ = false;
  JsonEndFinder finder_;
};

}  // namespace pagoda
