//! Builds tokenizers from the keys `tokenizer.ggml.*` of a GGUF file: BPE by ranked merges, over bytes ("gpt2") or
//! characters ("gemma4"), and SentencePiece BPE ("llama").

use std::collections::HashMap;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::utils::Sequence as NormalizerSequence;
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{AddedToken, Tokenizer};

use crate::pre_tokenizer::{PreTokenizer, Spelling};

/// The space as SentencePiece writes it.
const SPACE: &str = "▁";
const SPACE_CHARACTER: char = '▁';
/// Longer than the pieces of any real vocabulary. Splitting a piece at every place takes time quadratic in its length.
const MAX_PIECE_BYTES: usize = 1024;

// The values of tokenizer.ggml.token_type.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;

/// Phi-3's special tokens that do not absorb the white space after them.
const KEEP_WHITE_SPACE: [&str; 3] = ["<unk>", "<s>", "<|endoftext|>"];

pub struct Vocabulary {
    pub tokens: Vec<String>,
    pub scores: Vec<f32>,
    /// Empty: all tokens are normal.
    pub token_types: Vec<i32>,
    pub merges: Vec<String>,
    pub unk: Option<u32>,
    /// Special tokens, except `KEEP_WHITE_SPACE`, absorb the white space after them.
    pub strips_behind_special: bool,
}

impl Vocabulary {
    fn token_type(&self, id: usize) -> i32 {
        self.token_types.get(id).copied().unwrap_or(NORMAL)
    }

    fn ids(&self) -> HashMap<String, u32> {
        // If tokens are equal, the first one's id counts.
        let mut ids = HashMap::with_capacity(self.tokens.len());
        for (id, token) in self.tokens.iter().enumerate() {
            ids.entry(token.clone()).or_insert(id as u32);
        }
        ids
    }
}

fn ranked_merges(
    vocabulary: &Vocabulary,
    ids: &HashMap<String, u32>,
) -> Result<Vec<(String, String)>, String> {
    let mut merges = Vec::with_capacity(vocabulary.merges.len());
    for (index, merge) in vocabulary.merges.iter().enumerate() {
        let pair =
            merge.split_once(' ').filter(|(left, right)| !left.is_empty() && !right.is_empty());
        let Some((left, right)) = pair else {
            return Err(format!(
                "merges[{index}]: expected two tokens and a space between, got '{merge}'"
            ));
        };
        for token in [left, right, &format!("{left}{right}")] {
            if !ids.contains_key(token) {
                return Err(format!(
                    "merges[{index}]: '{merge}' needs the token '{token}', which is not there"
                ));
            }
        }
        merges.push((left.to_string(), right.to_string()));
    }
    Ok(merges)
}

/// Builds BPE by ranked merges. `pre`: the result of `pre_tokenizer::find` for tokenizer.ggml.pre.
pub fn ranked(vocabulary: &Vocabulary, pre: &PreTokenizer) -> Result<Tokenizer, String> {
    let ids = vocabulary.ids();
    let merges = ranked_merges(vocabulary, &ids)?;
    let has_characters = pre.spelling == Spelling::Characters;
    let mut builder = BPE::builder()
        .vocab_and_merges(ids.into_iter().collect::<Vocab>(), merges)
        .ignore_merges(pre.ignore_merges)
        .byte_fallback(has_characters)
        .fuse_unk(has_characters);
    if let Some(unk) = vocabulary.unk.filter(|_| has_characters) {
        builder = builder.unk_token(vocabulary.tokens[unk as usize].clone());
    }
    let mut tokenizer = Tokenizer::new(builder.build().map_err(|e| format!("merges: {e}"))?);
    if has_characters {
        tokenizer.with_normalizer(Some(space_to_character()?)).map_err(|e| e.to_string())?;
        tokenizer.with_decoder(Some(character_decoder(false)?));
    } else {
        tokenizer.with_normalizer(pre.normalizer()).map_err(|e| e.to_string())?;
        tokenizer.with_pre_tokenizer(Some(pre.build()?));
        tokenizer.with_decoder(Some(ByteLevel::default()));
    }
    add_special_tokens(&mut tokenizer, vocabulary, pre.strips_before)?;
    Ok(tokenizer)
}

fn space_to_character() -> Result<NormalizerWrapper, String> {
    Ok(Replace::new(" ", SPACE).map_err(|e| e.to_string())?.into())
}

/// Builds the decoder. `drops_space`: whether it removes the space that was added before the text.
fn character_decoder(drops_space: bool) -> Result<DecoderSequence, String> {
    let mut decoders: Vec<DecoderWrapper> = vec![
        Replace::new(SPACE, " ").map_err(|e| e.to_string())?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if drops_space {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    Ok(DecoderSequence::new(decoders))
}

/// Builds SentencePiece BPE. SentencePiece merges the two neighbours whose joint piece has the best score, leftmost
/// first. A list of pairs, ranked by the scores of their joint pieces, gives the same merges.
///
/// A space is added before a text, and after every special token in it. `metaspace` selects one of Hugging Face's ways
/// instead: "first" adds the space before the text alone, "always" after special tokens too. Both add none if a space
/// is already there.
pub fn sentence_piece(
    vocabulary: &Vocabulary,
    add_space_prefix: bool,
    metaspace: &[u8],
) -> Result<Tokenizer, String> {
    let ids = vocabulary.ids();
    let merges = merges_by_score(vocabulary, &ids)?;
    let mut builder = BPE::builder()
        .vocab_and_merges(ids.into_iter().collect::<Vocab>(), merges)
        .byte_fallback(true)
        .fuse_unk(true);
    if let Some(unk) = vocabulary.unk {
        builder = builder.unk_token(vocabulary.tokens[unk as usize].clone());
    }
    let mut tokenizer = Tokenizer::new(builder.build().map_err(|e| format!("pieces: {e}"))?);

    if let Some(scheme) = prepend_scheme(metaspace)? {
        tokenizer.with_pre_tokenizer(Some(Metaspace::new(SPACE_CHARACTER, scheme, false)));
    } else {
        let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
        if add_space_prefix {
            normalizers.push(Prepend::new(SPACE.to_string()).into());
        }
        normalizers.push(space_to_character()?);
        tokenizer
            .with_normalizer(Some(NormalizerSequence::new(normalizers)))
            .map_err(|e| e.to_string())?;
    }

    tokenizer.with_decoder(Some(character_decoder(add_space_prefix)?));
    add_special_tokens(&mut tokenizer, vocabulary, "")?;
    Ok(tokenizer)
}

fn prepend_scheme(metaspace: &[u8]) -> Result<Option<PrependScheme>, String> {
    match metaspace {
        b"" => Ok(None),
        b"first" => Ok(Some(PrependScheme::First)),
        b"always" => Ok(Some(PrependScheme::Always)),
        other => Err(format!(
            "metaspace: expected first or always, got '{}'",
            String::from_utf8_lossy(other)
        )),
    }
}

fn merges_by_score(
    vocabulary: &Vocabulary,
    ids: &HashMap<String, u32>,
) -> Result<Vec<(String, String)>, String> {
    let mergeable = |id: usize| matches!(vocabulary.token_type(id), NORMAL | UNUSED);
    let is_piece = |text: &str| ids.get(text).is_some_and(|id| mergeable(*id as usize));
    let mut ranked: Vec<(f32, &str, &str)> = Vec::new();
    for (id, piece) in vocabulary.tokens.iter().enumerate() {
        if !mergeable(id) {
            continue;
        }
        if piece.len() > MAX_PIECE_BYTES {
            return Err(format!(
                "token {id}: expected at most {MAX_PIECE_BYTES} bytes, got {}",
                piece.len()
            ));
        }
        if !vocabulary.scores[id].is_finite() {
            return Err(format!(
                "token {id}: expected a finite score, got {}",
                vocabulary.scores[id]
            ));
        }
        for (middle, _) in piece.char_indices().skip(1) {
            let (left, right) = piece.split_at(middle);
            if is_piece(left) && is_piece(right) {
                ranked.push((vocabulary.scores[id], left, right));
            }
        }
    }
    // The sort is stable: pieces of equal score keep the vocabulary's order.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(ranked.into_iter().map(|(_, l, r)| (l.to_string(), r.to_string())).collect())
}

/// Adds the special tokens. `strips_before`: the token that absorbs the white space before it.
fn add_special_tokens(
    tokenizer: &mut Tokenizer,
    vocabulary: &Vocabulary,
    strips_before: &str,
) -> Result<(), String> {
    let mut added = Vec::new();
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        let special = match vocabulary.token_type(id) {
            CONTROL | UNKNOWN => true,
            USER_DEFINED => false,
            _ => continue,
        };
        let strips_behind =
            vocabulary.strips_behind_special && !KEEP_WHITE_SPACE.contains(&token.as_str());
        let added_token = AddedToken::from(token.clone(), special).normalized(false);
        added.push(added_token.lstrip(token == strips_before).rstrip(strips_behind));
    }
    tokenizer.add_tokens(added).map_err(|e| format!("special tokens: {e}"))?;
    Ok(())
}
