// Grammars that an answer is held to, token by token. They go through llguidance: an Earley parser
// over a lexer of regular expressions, walked along a trie of the vocabulary.
//
// A grammar comes from a client, and is held to wholly or refused. Keywords of JSON Schema that are
// not supported or not known are errors that say where they stand. What would be passed over in a
// context-free grammar is such an error too. Objects that list properties have no others unless the
// schema says so. Compilation is bounded in the processor's time (5 s) and memory (256 MiB). So are
// all grammars together (1 GiB) and each step of one. A compilation that passes a limit concerns
// its own grammar alone: what it took is given back, and the next one is compiled.
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
  kJsonSchema,  // JSON text that the schema validates; properties in the schema's order, numbers of
                // no more than 80 digits in a row unless the schema asks for more
  kRegex,       // the whole answer matches it; Rust's syntax
  kChoice,      // one of the strings of a JSON list
  kContextFree,  // Lark as llguidance writes it, or GBNF (rules by ::=)
  kAnswer,       // Lark with JSON Schemas in it, each a rule's line: what answer_grammar() writes
};

// One space: models that may write new lines and white space wherever JSON has it lose their way.
inline constexpr std::string_view kJsonWhiteSpace = R"(\x20)";

// A longer text, or a longer white_space, is refused.
inline constexpr std::size_t kMaxGrammarBytes = 1 << 20;

struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  // The white space behind ',' and ':' of JSON text, which has no other: a regular expression that
  // matches white space alone, or nothing.
  std::string white_space{kJsonWhiteSpace};
  // A request's field, which errors name; none: they begin with [grammar].
  std::string asked_by;
};

// A grammar that a request asks for, and the field that asks.
struct GrammarRequest {
  GrammarSpec spec;
  std::string param;
  bool is_for_text = false;  // OpenAI's response_format: it holds a message's text, and no calls
};

// Makes grammars for one tokenizer. The parts that they share of the vocabulary are made at the
// first one; threads that compute masks ahead start when there is something for them. Thread-safe.
class GrammarCompiler {
 public:
  static constexpr SandboxLimits kCompileLimits = {.num_bytes = 256 << 20,
                                                   .processor_time = std::chrono::seconds(5)};

  // Makes a compiler; eos_token_ids end a text. tokenizer: [vocab], a model's own vocabulary may be
  // padded beyond it.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::vector<int> eos_token_ids,
                  const SandboxLimits& limits = kCompileLimits);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Compiles a grammar to the state before the first token; samples clone it. kInvalidArgument says
  // what is wrong with the grammar, kResourceExhausted: grammars in use take all the memory that
  // they may, or four compilations that were to be stopped for their time are at work still;
  // kUnavailable: the system has no memory or no thread left for one.
  Result<std::shared_ptr<const TokenMaskSource>> compile(const GrammarSpec& spec);

 private:
  struct Rust;       // the crate's compiler; its header stays out of this one
  Status prepare();  // once

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int> eos_token_ids_;
  SandboxLimits limits_;
  std::mutex mutex_;            // of who prepares
  std::unique_ptr<Rust> rust_;  // set once, before the first grammar
  MaskPrefetcher prefetcher_;
};

}  // namespace pagoda
