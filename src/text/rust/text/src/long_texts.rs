//! Tokenises long texts in pieces, because the crate uses about 260 bytes of memory for each byte that it gets at once.
//!
//! A piece ends before a single space between two ASCII letters, or after a line end that follows no white space and
//! precedes a letter. At such a place each expression in `pre_tokenizer::cuts_words` ends a match, and none looks
//! across it. So the tokens of the pieces, joined, are those of the whole text.

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::pre_tokenizer;

const PIECE_BYTES: usize = 256 << 10;

/// Returns whether the tokens of the pieces equal those of the whole text; false if it is not known.
pub fn can_be_cut(tokenizer: &Tokenizer) -> Result<bool, String> {
    let normalizer = serde_json::to_value(tokenizer.get_normalizer()).map_err(|e| e.to_string())?;
    let pre_tokenizer =
        serde_json::to_value(tokenizer.get_pre_tokenizer()).map_err(|e| e.to_string())?;
    let steps = match &pre_tokenizer["pretokenizers"] {
        Value::Array(steps) => steps.as_slice(),
        _ => std::slice::from_ref(&pre_tokenizer),
    };
    let normalizer_keeps_cuts = normalizer.is_null() || normalizer["type"] == "NFC";
    let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder();
    Ok(normalizer_keeps_cuts
        && steps.iter().all(keeps_cuts)
        && steps.iter().any(cuts_words)
        && added
            .values()
            .all(|token| !token.lstrip && !token.rstrip && !has_part_of_cut(&token.content)))
}

/// Returns whether a step splits a text at each place where a piece may end.
fn cuts_words(step: &Value) -> bool {
    match step["type"].as_str() {
        Some("ByteLevel") => step["use_regex"] == true,
        Some("Split") => step["pattern"]["Regex"].as_str().is_some_and(pre_tokenizer::cuts_words),
        _ => false,
    }
}

/// Returns whether a step splits the two parts of a cut text like the whole text.
fn keeps_cuts(step: &Value) -> bool {
    match step["type"].as_str() {
        Some("ByteLevel") => step["add_prefix_space"] == false,
        Some("Split") => {
            cuts_words(step)
                || step["pattern"]["Regex"].as_str().is_some_and(pre_tokenizer::looks_at_one_side)
        }
        Some("Digits") => true,
        _ => false,
    }
}

/// Returns whether an added token with this text might span a cut.
fn has_part_of_cut(content: &str) -> bool {
    let characters: Vec<char> = content.chars().collect();
    characters.windows(2).any(|pair| match pair {
        [before, ' '] => before.is_ascii_alphabetic(),
        ['\n', behind] => behind.is_alphabetic(),
        _ => false,
    })
}

/// Returns the text in pieces of at most `PIECE_BYTES`; a piece is longer only if it has no place to cut.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at(end_of_piece(rest));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

fn end_of_piece(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let last = (1..=PIECE_BYTES).rev().find(|&at| is_cut(text, at));
    last.or_else(|| (PIECE_BYTES + 1..text.len()).find(|&at| is_cut(text, at)))
        .unwrap_or(text.len())
}

/// Returns whether a text may be cut at `at`. REQUIRES: `at` is neither 0 nor the text's length.
fn is_cut(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    match (bytes[at - 1], bytes[at]) {
        (before, b' ') => {
            before.is_ascii_alphabetic()
                && bytes.get(at + 1).is_some_and(|behind| behind.is_ascii_alphabetic())
        }
        (b'\n', _) => {
            text[..at - 1].chars().next_back().is_some_and(|before| !before.is_whitespace())
                && text[at..].chars().next().is_some_and(char::is_alphabetic)
        }
        _ => false,
    }
}
