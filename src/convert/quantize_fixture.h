// Log-probabilities by which tests of quantize_model() compare models.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/source_path.h"

namespace pagoda {

inline const std::string kData = testing::source_path("tests/golden/data/");

// Returns the log-probabilities of a prompt of 60 ids below `vocab_size`, except the first one's.
inline std::vector<float> prompt_logprobs(const std::string& path, int vocab_size = 500) {
  const auto engine =
      open_engine(path, {.backend = Backend::kReference, .max_model_len = 128, .max_num_seqs = 1});
  std::vector<int> prompt;
  for (int i = 0; i < 60; ++i) prompt.push_back((i * 37 + 11) % vocab_size);
  const WholeAnswer answer =
      run_to_end(*engine, {.prompt_token_ids = prompt,
                           .sampling = {.temperature = 0, .max_tokens = 1, .prompt_logprobs = 0}});
  std::vector<float> values;
  for (const auto& entry : answer.prompt_logprobs) {
    if (entry) values.push_back(entry->chosen.logprob);
  }
  EXPECT_EQ(values.size(), prompt.size() - 1);
  return values;
}

}  // namespace pagoda
