// For tests: reads the golden files of src/text/testdata. Scripts in that folder generate them.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/cache_folder.h"
#include "core/json.h"
#include "tests/support/source_path.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {

inline std::filesystem::path test_data() {
  return testing::source_path("src/text/testdata");
}

// Reads a golden file and keeps the order of object keys, because templates print keys in order.
inline OrderedJson read_golden(std::string_view name) {
  std::ifstream file(test_data() / name);
  return parse_ordered_json(file);
}

// Returns the folder into which tools/fetch_chat_templates.py puts the templates of 70 models.
// goldens: jinja_goldens.json.
inline std::filesystem::path chat_templates_folder(const OrderedJson& goldens) {
  const Result<std::filesystem::path> cache = cache_folder();
  const std::filesystem::path root = cache.ok() ? *cache : std::filesystem::path();
  return root / "chat_templates" / goldens.at("source").get<std::string>();
}

// Builds a vocabulary. "tokens" has [id, token, type] for each token that the golden texts need;
// the other ids get placeholder names.
inline GgufVocabulary golden_vocabulary(const OrderedJson& golden) {
  GgufVocabulary vocabulary = {.model = golden.at("model"), .pre = golden.value("pre", "")};
  const size_t num_tokens = golden.at("num_tokens");
  for (size_t id = 0; id < num_tokens; ++id) {
    vocabulary.tokens.push_back(fmt::format("<left out {}>", id));
  }
  vocabulary.token_types.assign(num_tokens, 1);
  for (const auto& entry : golden.at("tokens")) {
    vocabulary.tokens.at(entry.at(0)) = entry.at(1);
    vocabulary.token_types.at(entry.at(0)) = entry.at(2);
  }
  if (golden.contains("merges"))
    vocabulary.merges = golden["merges"].get<std::vector<std::string>>();
  if (golden.contains("scores")) vocabulary.scores = golden["scores"].get<std::vector<float>>();
  if (golden.contains("bos")) vocabulary.bos_token_id = golden["bos"].get<int>();
  if (golden.contains("eos")) vocabulary.eos_token_id = golden["eos"].get<int>();
  if (golden.contains("unk")) vocabulary.unknown_token_id = golden["unk"].get<int>();
  return vocabulary;
}

}  // namespace pagoda
