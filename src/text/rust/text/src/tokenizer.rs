//! The tokenizer and the incremental detokenizer for text/tokenizer.h and text/detokenizer.h.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::de::IgnoredAny;
use tokenizers::{Encoding, Token, Tokenizer};

use crate::pieces::{PieceRule, PieceStream};
use crate::views::GgufVocabularyView;
use crate::{gguf, long_texts, pre_tokenizer};

struct Shared {
    tokenizer: Tokenizer,
    /// A copy of the tokenizer that reads special tokens in a text as plain text. Made at first use.
    literal: OnceLock<Tokenizer>,
    rule: PieceRule,
    can_be_cut: bool,
    /// The tokens that a GGUF file puts around a text. A tokenizer.json has a post-processor instead.
    bos: Option<u32>,
    eos: Option<u32>,
    vocab_size: u32,
}

#[derive(Clone)]
pub struct TextTokenizer(Arc<Shared>);

pub fn tokenizer_from_json(json: &[u8]) -> Result<TextTokenizer, String> {
    // The crate's own reader panics on some invalid JSON.
    serde_json::from_slice::<IgnoredAny>(json).map_err(|e| e.to_string())?;
    let mut tokenizer = Tokenizer::from_bytes(json).map_err(|e| e.to_string())?;
    tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
    tokenizer.with_padding(None);
    TextTokenizer::new(tokenizer, None, None)
}

pub fn tokenizer_from_gguf(view: &GgufVocabularyView) -> Result<TextTokenizer, String> {
    let mut tokens = Vec::with_capacity(view.tokens.len());
    for (id, token) in view.tokens.iter().enumerate() {
        let token = token.to_str().map_err(|_| format!("token {id}: expected UTF-8"))?;
        tokens.push(token.to_string());
    }
    let mut merges = Vec::with_capacity(view.merges.len());
    for (index, merge) in view.merges.iter().enumerate() {
        let merge = merge.to_str().map_err(|_| format!("merges[{index}]: expected UTF-8"))?;
        merges.push(merge.to_string());
    }
    let vocabulary = gguf::Vocabulary {
        tokens,
        scores: view.scores.iter().copied().collect(),
        token_types: view.token_types.iter().copied().collect(),
        merges,
        unk: id_of(view.unk_token_id),
        strips_behind_special: view.strips_behind_special,
    };
    let tokenizer = if view.is_sentence_piece {
        gguf::sentence_piece(&vocabulary, view.add_space_prefix, view.metaspace)?
    } else {
        let pre = std::str::from_utf8(view.pre).ok().and_then(pre_tokenizer::find);
        gguf::ranked(&vocabulary, pre.ok_or("unknown pre-tokenizer")?)?
    };
    TextTokenizer::new(tokenizer, id_of(view.bos_token_id), id_of(view.eos_token_id))
}

fn checked_utf8(text: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(text)
        .map_err(|e| format!("expected UTF-8, got other bytes at offset {}", e.valid_up_to()))
}

/// Returns the range of a piece's tokens that belong to the text. The post-processor's tokens around a piece are
/// included only before the first piece and after the last.
fn wanted_ids(encoding: &Encoding, is_first: bool, is_last: bool) -> Range<usize> {
    let is_around = encoding.get_special_tokens_mask();
    let is_inner = |&is_around: &u32| is_around == 0;
    let begin = if is_first { Some(0) } else { is_around.iter().position(is_inner) };
    let end = if is_last {
        Some(is_around.len())
    } else {
        is_around.iter().rposition(is_inner).map(|at| at + 1)
    };
    begin.unwrap_or(0)..end.unwrap_or(0)
}

/// Returns None for -1, which means "none" in the bridge.
fn id_of(id: i32) -> Option<u32> {
    u32::try_from(id).ok()
}

impl TextTokenizer {
    fn new(tokenizer: Tokenizer, bos: Option<u32>, eos: Option<u32>) -> Result<Self, String> {
        let rule = PieceRule::of(&tokenizer)?;
        let can_be_cut = long_texts::can_be_cut(&tokenizer)?;
        let last =
            tokenizer.get_vocab(true).into_values().max().ok_or("expected tokens, got none")?;
        if last >= i32::MAX as u32 {
            return Err(format!("expected token ids below 2^31 - 1, got {last}"));
        }
        let literal = OnceLock::new();
        let vocab_size = last + 1;
        let shared = Shared { tokenizer, literal, rule, can_be_cut, bos, eos, vocab_size };
        Ok(Self(Arc::new(shared)))
    }

    pub fn encode(
        &self,
        text: &[u8],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<i32>, String> {
        let text = checked_utf8(text)?;
        let shared = &*self.0;
        let tokenizer = if parse_special {
            &shared.tokenizer
        } else {
            shared.literal.get_or_init(|| {
                let mut literal = shared.tokenizer.clone();
                literal.set_encode_special_tokens(true);
                literal
            })
        };
        let around = |id: Option<u32>| id.filter(|_| add_special).map(|id| id as i32);
        let mut ids = Vec::from_iter(around(shared.bos));
        let mut pieces = self.pieces(text).peekable();
        let mut is_first = true;
        while let Some(piece) = pieces.next() {
            let encoding = tokenizer.encode_fast(piece, add_special).map_err(|e| e.to_string())?;
            let wanted = wanted_ids(&encoding, is_first, pieces.peek().is_none());
            ids.extend(encoding.get_ids()[wanted].iter().map(|&id| id as i32));
            is_first = false;
        }
        ids.extend(around(shared.eos));
        Ok(ids)
    }

    /// Returns the ids that the post-processor puts before, between and after two texts. It processes two texts of one
    /// marker each, and splits the result at the markers.
    pub fn pair_parts(&self) -> Result<[Vec<i32>; 3], String> {
        const TEXT: u32 = u32::MAX; // no token has it
        let shared = &*self.0;
        let text = || Encoding::from_tokens(vec![Token::new(TEXT, String::new(), (0, 0))], 0);
        let pair =
            shared.tokenizer.post_process(text(), Some(text()), true).map_err(|e| e.to_string())?;
        let mut parts = pair
            .get_ids()
            .split(|&id| id == TEXT)
            .map(|part| Vec::from_iter(part.iter().map(|&id| id as i32)));
        let mut next = || parts.next().ok_or("expected two texts and what stands around them");
        let (mut before, between, mut after) = (next()?, next()?, next()?);
        before.splice(0..0, shared.bos.map(|id| id as i32));
        after.extend(shared.eos.map(|id| id as i32));
        Ok([before, between, after])
    }

    /// Returns the bytes of the longest piece that `encode` passes to the crate at once.
    pub fn longest_piece(&self, text: &[u8]) -> Result<usize, String> {
        Ok(self.pieces(checked_utf8(text)?).map(str::len).max().unwrap_or(0))
    }

    /// Returns a text's pieces. An empty text has one piece, so that it gets the tokens around a text.
    fn pieces<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
        if self.0.can_be_cut && !text.is_empty() {
            Box::new(long_texts::pieces(text))
        } else {
            Box::new(std::iter::once(text))
        }
    }

    pub fn decode(&self, ids: &[i32], skip_special_tokens: bool) -> String {
        let mut stream = PieceStream::new(&self.0.rule, false);
        let mut text = String::new();
        for &id in ids {
            if let Some(token) = self.visible(id, skip_special_tokens) {
                text.push_str(&stream.push(&self.0.rule, &token));
            }
        }
        text.push_str(&stream.finish(&self.0.rule));
        text
    }

    /// Returns the token as the vocabulary writes it; empty if the id has none.
    pub fn id_to_token(&self, id: i32) -> String {
        id_of(id).and_then(|id| self.0.tokenizer.id_to_token(id)).unwrap_or_default()
    }

    pub fn token_bytes(&self, id: i32) -> Vec<u8> {
        self.visible(id, false).map(|token| self.0.rule.bytes(&token)).unwrap_or_default()
    }

    /// Returns a token's id; -1 if there is no such token.
    pub fn token_to_id(&self, token: &[u8]) -> i32 {
        let id =
            std::str::from_utf8(token).ok().and_then(|token| self.0.tokenizer.token_to_id(token));
        id.map_or(-1, |id| id as i32)
    }

    pub fn is_special(&self, id: i32) -> bool {
        let added = self.0.tokenizer.get_added_vocabulary().get_added_tokens_decoder();
        id_of(id).and_then(|id| added.get(&id)).is_some_and(|token| token.special)
    }

    pub fn vocab_size(&self) -> u32 {
        self.0.vocab_size
    }

    pub fn detokenizer(&self, skip_special_tokens: bool, continues: bool) -> TextDetokenizer {
        let stream = PieceStream::new(&self.0.rule, continues);
        TextDetokenizer { tokenizer: self.clone(), skip_special_tokens, stream }
    }

    /// Returns the token of an id; None if it is to be skipped or does not exist.
    fn visible(&self, id: i32, skip_special_tokens: bool) -> Option<String> {
        let tokenizer = &self.0.tokenizer;
        let token = tokenizer.id_to_token(id_of(id)?)?;
        let skipped =
            skip_special_tokens && tokenizer.get_added_vocabulary().is_special_token(&token);
        (!skipped).then_some(token)
    }
}

pub struct TextDetokenizer {
    tokenizer: TextTokenizer,
    skip_special_tokens: bool,
    stream: PieceStream,
}

impl TextDetokenizer {
    pub fn push(&mut self, id: i32) -> String {
        let token = self.tokenizer.visible(id, self.skip_special_tokens);
        token.map(|token| self.stream.push(&self.tokenizer.0.rule, &token)).unwrap_or_default()
    }

    pub fn finish(&mut self) -> String {
        self.stream.finish(&self.tokenizer.0.rule)
    }
}
