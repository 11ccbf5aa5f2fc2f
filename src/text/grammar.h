// Grammars that constrain an answer token by token. They are compiled by llguidance: an Earley
// parser over a lexer of regular expressions, which walks a trie of the vocabulary.
//
// A client's grammar is enforced completely or refused. Keywords of JSON Schema that are
// unsupported or unknown are errors that name their place in the schema. Directives of a
// context-free grammar that llguidance would ignore are errors too. An object that lists properties
// allows no others unless the schema says so. A compilation is bounded in CPU time (5 s) and memory
// (256 MiB). All living grammars together are bounded to 1 GiB, and each step of a grammar has a
// limit too. A compilation that exceeds a limit fails alone: its memory is freed, and later
// compilations are not affected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/token_mask_source.h"
#include "text/mask_prefetcher.h"
#include "text/sandbox_limits.h"
#include "text/tokenizer.h"

namespace pagoda {

enum class GrammarKind : std::uint8_t {
  // JSON text that the schema validates. Properties are in the schema's order. Numbers have at most
  // 80 digits in a row unless the schema asks for more.
  kJsonSchema,
  kRegex,        // the whole answer matches it; Rust's regex syntax
  kChoice,       // one of the strings of a JSON list
  kContextFree,  // llguidance's dialect of Lark, or GBNF (rules by ::=)
  kAnswer,       // Lark with JSON Schemas, each on a line of its own: what answer_grammar() writes
};

// One space. Some models degenerate if they may write new lines and white space wherever JSON
// allows them.
inline constexpr std::string_view kJsonWhiteSpace = R"(\x20)";

// A longer text or a longer white_space is refused.
inline constexpr std::size_t kMaxGrammarBytes = 1 << 20;

struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  // A regular expression for the optional white space after ',' and ':' of JSON text. It matches
  // white space alone. Elsewhere JSON text has no white space.
  std::string white_space{kJsonWhiteSpace};
  // The request's field that errors name; empty: they begin with [grammar].
  std::string asked_by;
};

// A grammar that a request asks for, and the name of the field that asks.
struct GrammarRequest {
  GrammarSpec spec;
  std::string param;
  // True for OpenAI's response_format, which constrains a message's text and not tool calls.
  bool is_for_text = false;
};

// Compiles grammars for one tokenizer. The data that all its grammars share is built before the
// first one. Threads that compute masks ahead start when they are needed. Thread-safe.
class GrammarCompiler {
 public:
  static constexpr SandboxLimits kCompileLimits = {.num_bytes = 256 << 20,
                                                   .processor_time = std::chrono::seconds(5)};

  // Makes a compiler; eos_token_ids end a text. tokenizer: [vocab]; a model's own vocabulary may be
  // padded beyond it.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::vector<int> eos_token_ids,
                  const SandboxLimits& limits = kCompileLimits);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Compiles a grammar and returns its state before the first token; samples clone it.
  // kInvalidArgument says what is wrong with the grammar. kResourceExhausted: living grammars use
  // all the memory allowed, or four compilations exceeded their time but have not stopped yet.
  // kUnavailable: the system has no memory or no thread left.
  Result<std::shared_ptr<const TokenMaskSource>> compile(const GrammarSpec& spec);

 private:
  struct Rust;       // the crate's compiler; its header is not included here
  Status prepare();  // runs once

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int> eos_token_ids_;
  SandboxLimits limits_;
  std::mutex mutex_;            // held while rust_ is set
  std::unique_ptr<Rust> rust_;  // set once, before the first grammar
  MaskPrefetcher prefetcher_;
};

}  // namespace pagoda
