// A ServedModel without weights. It has a byte-level tokenizer, a ChatML template, which prints
// calls and the variable `shown` as JSON, and a FakeEngine that follows the prompt's order.
//
// The last line of the prompt (in a chat: of the last message, be it a tool's result) is an order:
//   say TEXT      answers TEXT
//   count N       answers "1 2 3 ... N"
//   think S       waits S seconds before it answers "Done."
//   fail TEXT     answers "So far" and then fails with TEXT
// Any other line is answered by a fixed text with some Markdown. Embeddings are fake_embedding(),
// after the same orders to wait or to fail. A score is the sigmoid of an embedding's first number.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serving/served_model.h"
#include "tests/support/fake_engine.h"

namespace pagoda {

struct FakeModelOptions {
  double token_s = 0;
  int max_model_len = 2048;
  int max_queue = 64;
  bool has_chat_template = true;
  bool thinks = false;  // its answers may hold thoughts, in <think>
  // The text of every answer, instead of orders. It may change between two requests.
  std::shared_ptr<const std::string> answer = nullptr;
};

// Makes a model whose name is "fake-model". Its end-of-sequence token is <|im_end|>.
std::unique_ptr<ServedModel> make_fake_model(const FakeModelOptions& options = {});

// Gives the model another chat template. How answers are read stays as it is.
void set_chat_template(ServedModel& model, std::string_view text);

FakeEngine& fake_engine(ServedModel& model);

// Returns a tokenizer that puts <s>, token 2, before each text. Its other tokens are a (0) and b (1).
std::shared_ptr<const Tokenizer> tokenizer_with_bos();

// Returns the embedding of a prompt before normalisation; it differs between prompts.
std::vector<float> fake_embedding(const std::vector<int>& token_ids);

}  // namespace pagoda
