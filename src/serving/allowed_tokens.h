// AllowedTokens: a grammar for an answer that may hold only certain tokens. Where the grammar and
// the tokens leave none that may come next, its error names both fields of the request.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/token_mask_source.h"
#include "sampling/token_rules.h"

namespace pagoda {

// Thread-compatible.
class AllowedTokens final : public TokenMaskSource {
 public:
  // Makes a source. `rules` has the allowed tokens; `grammar_field` asks for the grammar.
  AllowedTokens(std::unique_ptr<TokenMaskSource> grammar, std::shared_ptr<const TokenRules> rules,
                std::string grammar_field)
      : grammar_(std::move(grammar)),
        rules_(std::move(rules)),
        grammar_field_(std::move(grammar_field)) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    return std::make_unique<AllowedTokens>(grammar_->clone(), rules_, grammar_field_);
  }
  Status fill_mask(std::span<std::uint32_t> bits) override;
  bool is_mask_near() const override { return grammar_->is_mask_near(); }
  bool wait_for_mask(Clock::TimePoint deadline) override {
    return grammar_->wait_for_mask(deadline);
  }
  Status accept(int token_id) override { return grammar_->accept(token_id); }
  bool is_stopped() const override { return grammar_->is_stopped(); }

 private:
  std::unique_ptr<TokenMaskSource> grammar_;
  std::shared_ptr<const TokenRules> rules_;
  std::string grammar_field_;
};

}  // namespace pagoda
