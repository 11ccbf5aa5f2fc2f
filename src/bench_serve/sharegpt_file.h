// Reads prompts from files: conversations in ShareGPT's format, and plain lines.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct Conversation {
  std::string question;
  std::string answer;  // the first answer
};

// Reads [{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}, ...]},
// ...] and returns the first two turns of every conversation that has two. The rest of the file is
// not kept in memory. kNotFound, kDataLoss.
Result<std::vector<Conversation>> read_sharegpt_file(const std::string& path);

// Reads a file's lines with their line ends; empty lines are skipped. kNotFound.
Result<std::vector<std::string>> read_text_lines(const std::string& path);

}  // namespace pagoda
