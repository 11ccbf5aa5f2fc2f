// Reads calls written as JSON: an object with a name and arguments, or a list of such objects.
//
// If the name precedes the arguments, they are returned while they are read, byte for byte as the
// model writes them. Otherwise they are returned at the object's end. All known templates have the
// name first.
#pragma once

#include <string>

#include "answer/call_reader.h"

namespace pagoda {

// Finds the end of a JSON object, list or string. It only checks that brackets match, and that
// characters outside strings may occur in JSON.
class JsonEndFinder {
 public:
  CallReader::State feed(char c);

 private:
  std::string open_;  // the brackets not closed yet
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
  std::string text_;  // the key or value being read
  std::string key_;
  std::string name_;
  std::string arguments_;      // arguments not returned yet
  bool is_streaming_ = false;  // the value is returned while it is read
  bool is_told_ = false;       // the call's name and the start of its arguments have been returned
};

// Reads a call written as name, [ARGS] and an object (Mistral's tokenizers from version 11 on).
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
