#include "serving/fill_in_format.h"

namespace pagoda {
namespace {

struct FillInNames {
  std::string_view prefix, suffix, middle;  // middle is "" if there is no such token
};

constexpr FillInNames kFillInNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen 2.5 Coder, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // Code Llama
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM-4
    {"[PREFIX]", "[SUFFIX]", ""},                               // Codestral
};

struct FileNames {
  std::string_view repository, file;
};

constexpr FileNames kFileNames[] = {
    {"<|repo_name|>", "<|file_sep|>"},  // Qwen 2.5 Coder
    {"<repo_name>", "<file_sep>"},      // StarCoder 2
    {"<reponame>", "<filename>"},       // StarCoder, Granite
};

void append(std::vector<int>& ids, std::span<const int> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

std::optional<FillInFormat> find_gap(const Tokenizer& tokenizer) {
  for (const FillInNames& names : kFillInNames) {
    const auto prefix = tokenizer.token_to_id(names.prefix);
    const auto suffix = tokenizer.token_to_id(names.suffix);
    const auto middle = names.middle.empty() ? std::nullopt : tokenizer.token_to_id(names.middle);
    if (prefix && suffix && (middle || names.middle.empty()))
      return FillInFormat{*prefix, *suffix, middle, {}, {}};
  }
  return {};
}

}  // namespace

std::optional<FillInFormat> find_fill_in_format(const Tokenizer& tokenizer) {
  std::optional<FillInFormat> format = find_gap(tokenizer);
  if (!format) return {};
  for (const FileNames& names : kFileNames) {
    const auto repository = tokenizer.token_to_id(names.repository);
    const auto file = tokenizer.token_to_id(names.file);
    if (!repository || !file) continue;
    format->repository_id = repository;
    format->file_id = file;
    break;
  }
  return format;
}

std::vector<int> fill_in_prompt(const FillInFormat& format, std::span<const int> begin,
                                std::span<const int> prefix, std::span<const int> suffix) {
  std::vector<int> ids(begin.begin(), begin.end());
  ids.reserve(begin.size() + prefix.size() + suffix.size() + 3);
  const auto add_prefix = [&] {
    ids.push_back(format.prefix_id);
    append(ids, prefix);
  };
  if (format.middle_id) add_prefix();
  ids.push_back(format.suffix_id);
  append(ids, suffix);
  if (format.middle_id) {
    ids.push_back(*format.middle_id);
  } else {
    add_prefix();
  }
  return ids;
}

}  // namespace pagoda
