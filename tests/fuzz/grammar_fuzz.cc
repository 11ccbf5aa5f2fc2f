// Grammars from clients: a byte for the kind, the grammar's text, a zero byte, and bytes that
// choose among the allowed tokens. Every allowed token must be accepted, and a text that completes
// a schema must be JSON.
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/json.h"
#include "text/grammar.h"

namespace pagoda {
namespace {

constexpr int kMaxTokens = 64;

std::string utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3f))};
}

// Makes a tokenizer with all bytes in the spelling of byte-level BPE, some longer tokens, and an
// end of text.
std::shared_ptr<const Tokenizer> make_tokenizer() {
  GgufVocabulary vocabulary = {.model = "gpt2", .pre = "gpt-2"};
  int next_substitute = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocabulary.tokens.push_back(utf8(prints ? byte : next_substitute++));
  }
  for (const char* token : {"{\"", "\"}", "\":", "\",", "true", "null", "10", "ab", "<end>"})
    vocabulary.tokens.emplace_back(token);
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  vocabulary.token_types.back() = 3;
  vocabulary.eos_token_id = static_cast<int>(vocabulary.tokens.size()) - 1;
  return Tokenizer::from_gguf(vocabulary).value();
}

struct Rig {
  std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer();
  GrammarCompiler compiler{tokenizer, {}};
};

Rig& rig() {
  static Rig rig;
  return rig;
}

std::vector<int> allowed(TokenMaskSource& source) {
  std::vector<std::uint32_t> bits((rig().tokenizer->vocab_size() + 31) / 32);
  std::vector<int> ids;
  if (!source.fill_mask(bits).ok()) return ids;  // the grammar became too complex
  for (int id = 0; id < rig().tokenizer->vocab_size(); ++id) {
    if (bits[id / 32] >> id % 32 & 1) ids.push_back(id);
  }
  PAGODA_CHECK(!ids.empty(), "a mask allows something");
  return ids;
}

void walk(TokenMaskSource& source, std::string_view draws, bool is_json) {
  std::string text;
  for (int i = 0; i < kMaxTokens && !source.is_stopped(); ++i) {
    const std::vector<int> ids = allowed(source);
    if (ids.empty()) return;
    const std::size_t draw =
        draws.empty() ? i * 7 : static_cast<std::uint8_t>(draws[i % draws.size()]);
    const int id = ids[draw % ids.size()];
    if (!source.accept(id).ok()) return;  // the grammar became too complex
    if (id != rig().tokenizer->eos_token_id()) text += rig().tokenizer->token_bytes(id).value();
  }
  if (!source.is_stopped() || !is_json) return;
  // JSON has no largest number, but its readers have one.
  const std::string short_numbers = std::regex_replace(text, std::regex("[0-9]+"), "0");
  PAGODA_CHECK(nlohmann::json::accept(short_numbers), "a schema's text is JSON: " + text);
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const pagoda::GrammarSpec spec = {.kind = static_cast<pagoda::GrammarKind>(data[0] % 4),
                                    .text = std::string(input.substr(0, end))};
  const auto compiled = pagoda::rig().compiler.compile(spec);
  if (!compiled.ok()) {
    PAGODA_CHECK(compiled.status().message().find('\n') == std::string::npos, "one line");
    return 0;
  }
  pagoda::walk(*(*compiled)->clone(), input.substr(std::min(end + 1, input.size())),
               spec.kind == pagoda::GrammarKind::kJsonSchema);
  return 0;
}
