// Prompts from files: conversations as ShareGPT exports them, and plain lines.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct Conversation {
  std::string question;
  std::string answer;  // the first
};

// Reads [{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}, ...]},
// ...]: the first two turns of every conversation that has two. Only those stay in memory.
// kNotFound, kDataLoss.
Result<std::vector<Conversation>> read_sharegpt_file(const std::string& path);

// Reads a file's lines with their ends; empty ones are left out. kNotFound.
Result<std::vector<std::string>> read_text_lines(const std::string& path);

}  // namespace pagoda
