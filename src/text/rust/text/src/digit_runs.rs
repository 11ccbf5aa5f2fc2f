//! An end for numbers. JSON allows one of any length, and a small model that draws digit after digit writes to the end of
//! its context. So a run of digits that has become longer than anything counts goes on only where the grammar asks for
//! more: the text stays one of the grammar's.
//!
//! Digits of strings are let alone: there a letter may come too.

use llguidance::toktrie::{SimpleVob, TokTrie, TokenId};

/// Integers of 256 bits have 78 digits.
const MAX_DIGITS: usize = 80;
/// A letter of no number, true, false or null.
const LETTER: &[u8] = b"g";

/// The tokens of a vocabulary that matter here.
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

/// How many digits a text ends with.
#[derive(Clone, Default)]
pub struct DigitRun {
    length: usize,
}

impl DigitRun {
    pub fn accept(&mut self, token: &[u8]) {
        let at_end = token.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        self.length = if at_end == token.len() { self.length + at_end } else { at_end };
    }

    /// Leaves out of `mask` what would make a long number longer.
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
