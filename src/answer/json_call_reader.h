// Reads calls written as JSON: an object with a name and arguments, or a list of such objects.
//
// If the name precedes the arguments, they are returned while they are read, as the model writes
// them but for JsonScanner's escapes. Otherwise they are returned at the object's end. All known
// templates have the name first.
#pragma once

#include <span>
#include <string>

#include "answer/call_reader.h"
#include "answer/json_scanner.h"

namespace pagoda {

class JsonCallReader : public CallReader {
 public:
  // Makes a reader. `begins_with_any_key`: keys other than a call's may precede its name. Behind
  // the name they always may stand.
  JsonCallReader(std::span<const ToolDefinition> tools, bool begins_with_any_key)
      : tools_(tools), begins_with_any_key_(begins_with_any_key) {}

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

  State take(char c, std::vector<AnswerPart>& parts);
  State begin(char c);
  State begin_object(char c);
  State begin_key(char c, std::vector<AnswerPart>& parts);
  State end_key(char c);
  State begin_value(char c, std::vector<AnswerPart>& parts);
  State take_value(char c, std::vector<AnswerPart>& parts);
  State take_word(char c, std::vector<AnswerPart>& parts);
  State end_value(std::vector<AnswerPart>& parts);
  State take_arguments(const std::string& arguments);
  State behind_value(char c, std::vector<AnswerPart>& parts);
  State end_object(std::vector<AnswerPart>& parts);
  State behind_object(char c);

  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }
  bool is_in_string() const;

  std::span<const ToolDefinition> tools_;
  bool begins_with_any_key_;
  Place place_ = Place::kBeginning;
  bool is_list_ = false;
  JsonScanner scanner_;
  std::string text_;  // the key or value being read
  std::string key_;
  std::string name_;
  std::string arguments_;  // arguments not returned yet
  bool has_other_keys_ = false;
  bool is_streaming_ = false;   // the value is returned while it is read
  bool is_told_ = false;        // the call's name and the start of its arguments have been returned
  bool has_told_call_ = false;  // this call or an earlier one of the list has been returned
  std::string tag_;             // what may become the tag that closes the calls
};

// Reads a call written as name, [ARGS] and an object (Mistral's tokenizers from version 11 on).
class NamedCallReader : public CallReader {
 public:
  explicit NamedCallReader(std::span<const ToolDefinition> tools) : tools_(tools) {}

  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  State end_name(char c);

  std::span<const ToolDefinition> tools_;
  std::string name_;
  bool has_name_ = false;
  bool has_begun_ = false;
  JsonScanner scanner_;
};

}  // namespace pagoda
