#include "text/grammar.h"

#include <algorithm>

#include "text/rust_bridge.h"

namespace pagoda {

struct GrammarCompiler::Rust {
  ::rust::Box<rust_text::GrammarCompiler> compiler;
};

namespace {

constexpr std::string_view kGrammarContext = "[grammar] ";

rust_text::GrammarKind to_rust(GrammarKind kind) {
  static_assert(static_cast<int>(rust_text::GrammarKind::JsonSchema) ==
                static_cast<int>(GrammarKind::kJsonSchema));
  static_assert(static_cast<int>(rust_text::GrammarKind::Answer) ==
                static_cast<int>(GrammarKind::kAnswer));
  return static_cast<rust_text::GrammarKind>(kind);
}

class GrammarMaskSource final : public TokenMaskSource {
 public:
  GrammarMaskSource(::rust::Box<rust_text::GrammarState> state, std::string context)
      : state_(std::move(state)), context_(std::move(context)) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    return std::make_unique<GrammarMaskSource>(state_->copy(), context_);
  }

  Status fill_mask(std::span<std::uint32_t> bits) override {
    return call([&] { state_->fill_mask({bits.data(), bits.size()}); });
  }

  Status accept(int token_id) override {
    return call([&] { state_->accept(token_id); });
  }

  bool is_stopped() const override { return state_->is_stopped(); }

 private:
  template <typename Call>
  Status call(Call&& call) {
    try {
      call();
      return ok_status();
    } catch (const ::rust::Error& error) {
      return rust_status(StatusCode::kInvalidArgument,
                         context_ + "the grammar cannot be followed any further: ", error);
    }
  }

  ::rust::Box<rust_text::GrammarState> state_;
  std::string context_;
};

std::string context_of(const GrammarSpec& spec) {
  return spec.asked_by.empty() ? std::string(kGrammarContext)
                               : fmt::format("'{}': ", spec.asked_by);
}

}  // namespace

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer,
                                 std::vector<int> eos_token_ids, const SandboxLimits& limits)
    : tokenizer_(std::move(tokenizer)), eos_token_ids_(std::move(eos_token_ids)), limits_(limits) {
  if (const auto eos = tokenizer_->eos_token_id()) eos_token_ids_.push_back(*eos);
}

GrammarCompiler::~GrammarCompiler() = default;

Status GrammarCompiler::prepare() {
  const std::lock_guard lock(mutex_);
  if (rust_) return ok_status();
  auto rust = call_rust(StatusCode::kInternal, kGrammarContext, [&] {
    return std::make_unique<Rust>(Rust{rust_text::grammar_compiler(
        *tokenizer_->rust_->tokenizer, {eos_token_ids_.data(), eos_token_ids_.size()},
        rust_limits(limits_))});
  });
  if (!rust.ok()) return rust.status();
  rust_ = *std::move(rust);
  return ok_status();
}

Result<std::shared_ptr<const TokenMaskSource>> GrammarCompiler::compile(const GrammarSpec& spec) {
  PAGODA_RETURN_IF_ERROR(prepare());
  if (rust_->compiler->is_full())
    return resource_exhausted(
        "[grammar] the grammars in use take all memory or time that they may");
  const std::string context = context_of(spec);
  const std::size_t num_bytes = std::max(spec.text.size(), spec.white_space.size());
  if (num_bytes > kMaxGrammarBytes)
    return invalid_argument("{}expected at most {} bytes, got {}", context, kMaxGrammarBytes,
                            num_bytes);
  return call_rust(
      StatusCode::kInvalidArgument, context, [&]() -> std::shared_ptr<const TokenMaskSource> {
        auto state = rust_->compiler->compile(to_rust(spec.kind), rust_bytes(spec.text),
                                              rust_bytes(spec.white_space));
        return prefetcher_.wrap(std::make_unique<GrammarMaskSource>(std::move(state), context));
      });
}

}  // namespace pagoda
