#include "tests/support/fake_model.h"

#include <algorithm>
#include <cstdlib>

#include "text/gguf_vocabulary.h"

namespace pagoda {
namespace {

constexpr int kEmbeddingSize = 8;

constexpr std::string_view kTemplate =
    "{{ shown | tojson if shown is defined }}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ (message['tool_calls'] | tojson if message['tool_calls'] is defined else '') "
    "+ '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr std::string_view kDefaultAnswer =
    "A pagoda is a **tiered tower** with several eaves.\n\n"
    "- It began as a *stupa* in India.\n- Many are built of wood, brick or stone.\n\n"
    "```python\nfor tier in range(5):\n    print(\"<eave>\", tier)\n```\n\n"
    "Ask about `say`, or about anything else. 再见 👋";

std::string utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3f))};
}

// Returns the spelling of each byte in byte-level BPE: printable bytes as they are, the others from
// U+0100 on, in order.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  int next_substitute = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    tokens.push_back(utf8(prints ? byte : next_substitute++));
  }
  return tokens;
}

GgufVocabulary make_vocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.tokens = byte_tokens();
  const std::string space = utf8(0x120);
  vocabulary.merges = {"h e", "i n", space + " t", space + "t he", "e r"};
  for (const std::string& merge : vocabulary.merges) {
    std::string token = merge;
    token.erase(token.find(' '), 1);
    vocabulary.tokens.push_back(token);
  }
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  for (const char* control : {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>",
                              "<|im_start|>", "<|im_end|>"}) {
    vocabulary.tokens.emplace_back(control);
    vocabulary.token_types.push_back(3);
  }
  vocabulary.eos_token_id = static_cast<int>(vocabulary.tokens.size()) - 1;
  return vocabulary;
}

// Returns the last line of a rendered chat's last message, a tool's result too, or of any other
// prompt.
std::string last_line(std::string text) {
  for (const std::string_view end : {"<|im_end|>\n<|im_start|>assistant\n", "\n</tool_response>"}) {
    if (text.ends_with(end)) text.resize(text.size() - end.size());
  }
  return text.substr(text.rfind('\n') + 1);
}

std::string numbers(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i > 1 ? " " : "") + std::to_string(i);
  return text;
}

std::vector<int> answer_tokens(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, {.add_special_tokens = false, .parse_special = true}).value();
}

FakeReply obey(const Tokenizer& tokenizer, const GenerationRequest& request) {
  const std::string order = last_line(tokenizer.decode(request.prompt_token_ids, false).value());
  const auto argument = order.substr(std::min(order.size(), order.find(' ') + 1));
  FakeReply reply = {.embedding = fake_embedding(request.prompt_token_ids)};
  std::string text(kDefaultAnswer);
  if (order.starts_with("say ")) text = argument;
  if (order.starts_with("count "))
    text = numbers(std::clamp(std::atoi(argument.c_str()), 0, 10000));
  if (order.starts_with("think ")) {
    reply.prefill_s = std::clamp(std::atof(argument.c_str()), 0.0, 60.0);
    text = "Done.";
  }
  if (order.starts_with("fail ")) {
    reply.error = internal_error("{}", argument);
    text = "So far";
  }
  reply.token_ids = answer_tokens(tokenizer, text);
  return reply;
}

}  // namespace

std::unique_ptr<ServedModel> make_fake_model(const FakeModelOptions& options) {
  auto model = std::make_unique<ServedModel>();
  model->name = "fake-model";
  model->tokenizer = Tokenizer::from_gguf(make_vocabulary()).value();
  if (options.has_chat_template) set_chat_template(*model, kTemplate);
  model->fill_in = find_fill_in_format(*model->tokenizer);
  if (options.thinks) model->answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const int eos_token_id = *model->tokenizer->eos_token_id();
  model->config.eos_token_ids = {eos_token_id};
  model->config.hidden_size = kEmbeddingSize;
  model->score_format = ScoreFormat{.weights = std::vector<float>(kEmbeddingSize)};
  model->score_format->weights.front() = 1;
  model->config.vocab_size = model->tokenizer->vocab_size();
  model->grammars =
      std::make_unique<GrammarCompiler>(model->tokenizer, model->config.eos_token_ids);
  model->defaults.temperature = 0.5f;
  FakeEngineOptions engine_options;
  engine_options.limits.max_model_len = options.max_model_len;
  engine_options.limits.max_queue = options.max_queue;
  engine_options.limits.vocab_size = model->tokenizer->vocab_size();
  engine_options.eos_token_id = eos_token_id;
  engine_options.token_s = options.token_s;
  engine_options.reply = [tokenizer = model->tokenizer, answer = options.answer](
                             const GenerationRequest& request, int) {
    return answer ? FakeReply{.token_ids = answer_tokens(*tokenizer, *answer)}
                  : obey(*tokenizer, request);
  };
  model->engine = std::make_unique<FakeEngine>(std::move(engine_options));
  return model;
}

void set_chat_template(ServedModel& model, std::string_view text) {
  model.chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::from_text("chat", text).value());
  model.template_traits = probe_template(*model.chat_template, model.tokenizer->bos_token(),
                                         model.tokenizer->eos_token());
}

std::shared_ptr<const Tokenizer> tokenizer_with_bos() {
  return Tokenizer::from_gguf({.model = "gpt2",
                               .pre = "gpt-2",
                               .tokens = {"a", "b", "<s>"},
                               .token_types = {1, 1, 3},
                               .bos_token_id = 2,
                               .add_bos_token = true})
      .value();
}

std::vector<float> fake_embedding(const std::vector<int>& token_ids) {
  std::vector<float> embedding(kEmbeddingSize, 0.125F);
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    embedding[i % kEmbeddingSize] += static_cast<float>(token_ids[i] % 37) - 18;
    embedding[token_ids[i] % kEmbeddingSize] += 0.5F * static_cast<float>(i % 50);
  }
  return embedding;
}

FakeEngine& fake_engine(ServedModel& model) {
  return static_cast<FakeEngine&>(*model.engine);
}

}  // namespace pagoda
