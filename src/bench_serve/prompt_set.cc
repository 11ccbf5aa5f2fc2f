#include "bench_serve/prompt_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "bench_serve/prompt_words.h"
#include "bench_serve/sharegpt_file.h"

namespace pagoda {

namespace {

constexpr int kDefaultInputLen = 1024, kDefaultOutputLen = 128;
constexpr int kDefaultSonnetInputLen = 550, kDefaultSonnetPrefixLen = 200;
constexpr int kDefaultSonnetOutputLen = 150;
constexpr int kVocabularyWords = 4000;
constexpr int kMinVocabulary = 2;
constexpr double kTokensPerWord = 1.3;  // for English, if no tokenizer counts the tokens

// vLLM keeps only ShareGPT conversations of these lengths, in tokens.
constexpr int kMinShareGptLen = 4, kMaxShareGptInput = 1024, kMaxShareGptTotal = 2048;
// A source of random prompts. They are token ids that the server's tokenizer produces, so all of
// them are valid there. If the server does not give token ids, they are words.
class TokenSource {
 public:
  TokenSource(const Encode& encode, std::mt19937_64& random) : random_(random) {
    std::string text;
    for (int i = 0; i < kVocabularyWords; ++i) {
      text += ' ';
      text += i % 4 == 0 ? random_word(random) : random_syllables(random);
    }
    const auto ids = encode(text);
    if (!ids) return;
    // The first id may be a beginning-of-sequence token.
    const std::set<int> distinct(ids->begin() + (ids->empty() ? 0 : 1), ids->end());
    if (distinct.size() >= kMinVocabulary) vocabulary_.assign(distinct.begin(), distinct.end());
  }

  void append(BenchPrompt& prompt, int num_tokens) {
    prompt.num_tokens += num_tokens;
    if (vocabulary_.empty()) {
      for (int i = 0; i < num_tokens; ++i)
        prompt.text += (prompt.text.empty() ? "" : " ") + random_word(random_);
      return;
    }
    std::uniform_int_distribution<std::size_t> place(0, vocabulary_.size() - 1);
    for (int i = 0; i < num_tokens; ++i) prompt.token_ids.push_back(vocabulary_[place(random_)]);
  }

 private:
  std::mt19937_64& random_;
  std::vector<int> vocabulary_;
};

int count_tokens(const Encode& encode, const std::string& text) {
  if (const auto ids = encode(text)) return static_cast<int>(ids->size());
  const auto num_words = 1 + std::count(text.begin(), text.end(), ' ');
  return static_cast<int>(std::lround(kTokensPerWord * static_cast<double>(num_words)));
}

std::vector<BenchPrompt> random_prompts(const PromptSetOptions& options, const Encode& encode) {
  std::mt19937_64 random(options.seed);
  TokenSource source(encode, random);
  std::vector<BenchPrompt> prompts(options.num_prompts);
  for (BenchPrompt& prompt : prompts) {
    source.append(prompt, options.input_len.value_or(kDefaultInputLen));
    prompt.output_len = options.output_len.value_or(kDefaultOutputLen);
  }
  return prompts;
}

Result<std::vector<BenchPrompt>> repeated_prefix_prompts(const PromptSetOptions& options,
                                                         const Encode& encode) {
  const int input_len = options.input_len.value_or(kDefaultInputLen);
  const int prefix_len = options.prefix_len.value_or(input_len / 2);
  if (prefix_len >= input_len) {
    return invalid_argument("[prefix-len] expected fewer than the {} tokens of a prompt, got {}",
                            input_len, prefix_len);
  }
  std::mt19937_64 random(options.seed);
  TokenSource source(encode, random);
  std::vector<BenchPrompt> prefixes(std::min(options.num_prefixes, options.num_prompts));
  for (BenchPrompt& prefix : prefixes) source.append(prefix, prefix_len);
  std::vector<BenchPrompt> prompts;
  for (int i = 0; i < options.num_prompts; ++i) {
    prompts.push_back(prefixes[i % prefixes.size()]);
    source.append(prompts.back(), input_len - prefix_len);
    prompts.back().output_len = options.output_len.value_or(kDefaultOutputLen);
  }
  std::shuffle(prompts.begin(), prompts.end(), random);
  return prompts;
}

bool is_kept(int input_len, int output_len) {
  return input_len >= kMinShareGptLen && output_len >= kMinShareGptLen &&
         input_len <= kMaxShareGptInput && input_len + output_len <= kMaxShareGptTotal;
}

Result<std::vector<BenchPrompt>> sharegpt_prompts(const PromptSetOptions& options,
                                                  const Encode& encode) {
  if (options.input_len) {
    return invalid_argument(
        "[input-len] a ShareGPT file has lengths of its own: expected no --input-len, got {}",
        *options.input_len);
  }
  PAGODA_ASSIGN_OR_RETURN(std::vector<Conversation> conversations,
                          read_sharegpt_file(options.path));
  std::mt19937_64 random(options.seed);
  std::shuffle(conversations.begin(), conversations.end(), random);
  std::vector<BenchPrompt> prompts;
  for (Conversation& conversation : conversations) {
    if (static_cast<int>(prompts.size()) == options.num_prompts) return prompts;
    const int input_len = count_tokens(encode, conversation.question);
    const int output_len =
        options.output_len ? *options.output_len : count_tokens(encode, conversation.answer);
    if (!is_kept(input_len, options.output_len ? kMinShareGptLen : output_len)) continue;
    prompts.push_back({.text = std::move(conversation.question),
                       .num_tokens = input_len,
                       .output_len = output_len});
  }
  if (prompts.empty()) {
    return data_loss("[sharegpt] {}: expected a conversation of {} to {} tokens, got none",
                     options.path, kMinShareGptLen, kMaxShareGptInput);
  }
  // If there are too few prompts, they are repeated from the start, as in vLLM.
  for (std::size_t i = 0; static_cast<int>(prompts.size()) < options.num_prompts; ++i)
    prompts.push_back(prompts[i]);
  return prompts;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

Result<std::vector<BenchPrompt>> sonnet_prompts(const PromptSetOptions& options,
                                                const Encode& encode) {
  std::mt19937_64 random(options.seed);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> lines, read_text_lines(options.path));
  if (lines.empty())
    return data_loss("[sonnet] {}: expected lines of text, got none", options.path);
  const std::string order = "Pick as many lines as you can from these poem lines:\n";
  const int input_len = options.input_len.value_or(kDefaultSonnetInputLen);
  const int prefix_len = options.prefix_len.value_or(std::min(kDefaultSonnetPrefixLen, input_len));
  const int order_len = count_tokens(encode, order);
  if (order_len > prefix_len || prefix_len > input_len) {
    return invalid_argument(
        "[prefix-len] expected {} to {} tokens (the question's own and a prompt's), got {}",
        order_len, input_len, prefix_len);
  }
  const double line_len = count_tokens(encode, joined(lines)) / static_cast<double>(lines.size());
  const auto num_lines = [&](int num_tokens) {
    return static_cast<int>(std::lround((num_tokens - order_len) / line_len));
  };
  const int num_shared = num_lines(prefix_len);
  std::vector<BenchPrompt> prompts;
  std::uniform_int_distribution<std::size_t> place(0, lines.size() - 1);
  for (int i = 0; i < options.num_prompts; ++i) {
    std::string text = order;
    for (int line = 0; line < num_lines(input_len); ++line)
      text += line < num_shared ? lines[line % lines.size()] : lines[place(random)];
    const int num_tokens = count_tokens(encode, text);
    prompts.push_back({.text = std::move(text),
                       .num_tokens = num_tokens,
                       .output_len = options.output_len.value_or(kDefaultSonnetOutputLen)});
  }
  return prompts;
}

}  // namespace

Status check_prompt_set(const PromptSetOptions& options) {
  const bool takes_path = options.name == "sharegpt" || options.name == "sonnet";
  if (options.path.empty() && takes_path) {
    return invalid_argument(
        "[dataset-path] the data set {} is a file: expected its path, got none; random and "
        "prefix_repetition need none",
        options.name);
  }
  if (!options.path.empty() && !takes_path) {
    return invalid_argument("[dataset-path] the data set {} is made here: expected no path, got {}",
                            options.name, options.path);
  }
  if (takes_path || options.name == "random" || options.name == "prefix_repetition")
    return ok_status();
  return invalid_argument(
      "[dataset-name] expected random, sharegpt, sonnet or prefix_repetition, got '{}'",
      options.name);
}

Result<std::vector<BenchPrompt>> make_prompts(const PromptSetOptions& options,
                                              const Encode& encode) {
  PAGODA_RETURN_IF_ERROR(check_prompt_set(options));
  if (options.name == "sharegpt") return sharegpt_prompts(options, encode);
  if (options.name == "sonnet") return sonnet_prompts(options, encode);
  if (options.name == "prefix_repetition") return repeated_prefix_prompts(options, encode);
  return random_prompts(options, encode);
}

}  // namespace pagoda
