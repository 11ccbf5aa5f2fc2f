//! Ends long numbers. JSON allows numbers of any length, and a small model that repeats digits writes until its context
//! is full. So a run of digits longer than any useful number continues only if the grammar requires more digits. The
//! text still fits the grammar.
//!
//! Digits in strings are not limited, because a letter is allowed there too.

use llguidance::toktrie::{SimpleVob, TokTrie, TokenId};

/// Integers of 256 bits have 78 digits.
const MAX_DIGITS: usize = 80;
/// A letter that occurs in no number, true, false or null. If it is allowed, the text is inside a string.
const LETTER: &[u8] = b"g";

/// The tokens that begin with a digit, and the token of LETTER.
pub struct DigitTokens {
    begin_with_digit: SimpleVob,
    letter: Option<TokenId>,
}

impl DigitTokens {
    pub fn new(trie: &TokTrie) -> DigitTokens {
        let mut begin_with_digit = trie.alloc_token_set();
        for id in 0..trie.vocab_size() as TokenId {
            if trie.token(id).first().is_some_and(u8::is_ascii_digit) {
                begin_with_digit.allow_token(id);
            }
        }
        DigitTokens { begin_with_digit, letter: trie.token_id(LETTER) }
    }
}

/// The number of digits at the end of a text.
#[derive(Clone, Default)]
pub struct DigitRun {
    length: usize,
}

impl DigitRun {
    pub fn accept(&mut self, token: &[u8]) {
        let at_end = token.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        self.length = if at_end == token.len() { self.length + at_end } else { at_end };
    }

    /// Removes the tokens from `mask` that would make a long number longer, unless no token would be left.
    pub fn bound(&self, tokens: &DigitTokens, mask: &mut SimpleVob) {
        let Some(letter) = tokens.letter else { return };
        if self.length < MAX_DIGITS || mask.is_allowed(letter) {
            return;
        }
        let mut shorter = mask.clone();
        shorter.sub(&tokens.begin_with_digit);
        if !shorter.is_zero() {
            *mask = shorter;
        }
    }
}
