#include "text/detokenizer.h"

#include "core/check.h"
#include "text/rust_bridge.h"

namespace pagoda {

struct Detokenizer::Rust {
  ::rust::Box<rust_text::Detokenizer> detokenizer;
};

namespace {

// Returns the call's text. Every id decodes to some text, so an error here is a bug of the crate.
template <typename Call>
std::string checked(Call&& call) {
  auto text = call_rust(StatusCode::kInternal, "[detokenizer] ", std::forward<Call>(call));
  PAGODA_CHECK(text.ok(), text.status().message());
  return *std::move(text);
}

}  // namespace

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DetokenizerOptions options)
    : tokenizer_(std::move(tokenizer)) {
  const rust_text::Tokenizer& rust = *tokenizer_->rust_->tokenizer;
  rust_ = std::make_unique<Rust>(
      Rust{rust.detokenizer(options.skip_special_tokens, options.continues_text)});
}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;

std::string Detokenizer::push(int id) {
  return checked([&] { return std::string(rust_->detokenizer->push(id)); });
}

std::string Detokenizer::finish() {
  return checked([&] { return std::string(rust_->detokenizer->finish()); });
}

}  // namespace pagoda
