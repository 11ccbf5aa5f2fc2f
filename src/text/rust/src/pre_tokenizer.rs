//! The pre-tokenizers that `tokenizer.ggml.pre` names: how text is cut before byte-level merges.
//!
//! The expressions are those of the checkpoints' own tokenizer.json (Oniguruma syntax), so that ids equal the original's;
//! where a GGUF name stands for several checkpoints, they agree on the expression.

use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
// Letters that have case. By number, because some of them are not in composed form.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    "A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}",
    "\u{295}-\u{2AF}\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}",
    "\u{388}-\u{38A}\u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}",
    "\u{531}-\u{556}\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}",
    "\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}",
    "\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}",
    "\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}",
    "\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}",
    "\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}",
    "\u{2126}\u{2128}\u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}",
    "\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}",
    "\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}",
    "\u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}",
    "\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}",
    "\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}",
    "\u{1E900}-\u{1E943}",
    "]+"
);
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";
const FALCON_PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]+";
const DIGIT: &str = r"\p{N}";
const DIGITS: &str = r"\p{N}+";
const UP_TO_THREE_DIGITS: &str = r"\p{N}{1,3}";
const THREE_DIGITS: &str = "[0-9][0-9][0-9]";
const HAN_AND_KANA: &str = "[一-龥぀-ゟ゠-ヿ]+";

/// How one name cuts text, and what else the checkpoints behind it do.
pub struct PreTokenizer {
    /// Applied one after the other: each match becomes a piece of its own, and so does what lies between matches.
    pub expressions: &'static [&'static str],
    /// Applied to the characters that bytes became, where a checkpoint cuts there too.
    pub expressions_on_bytes: &'static [&'static str],
    /// Unicode composition before anything else, as in Qwen's tokenizer.json.
    pub nfc: bool,
    /// A piece that is a token as a whole is taken without merging.
    pub ignore_merges: bool,
    /// Whether a text starts with the BOS token where the file does not say.
    pub adds_bos: bool,
}

const fn cuts(expressions: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer {
        expressions,
        expressions_on_bytes: &[],
        nfc: false,
        ignore_merges: false,
        adds_bos: false,
    }
}

/// The pre-tokenizer of a name, or None for an unknown one. A file without the key has the empty name.
pub fn find(name: &str) -> Option<PreTokenizer> {
    Some(match name {
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "jina-v1-en" | "jina-v2-es" | "jina-v2-de"
        | "jina-v2-code" | "roberta-bpe" | "gigachat" | "exaone4" | "mellum" | "modern-bert"
        | "a.x-4.0" | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling" => cuts(&[GPT2]),
        "" | "default" => cuts(&[PUNCTUATION, GPT2, DIGITS, THREE_DIGITS]),
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b"
        | "mellum2" => cuts(&[DIGIT, GPT2]),
        "falcon" => PreTokenizer {
            expressions_on_bytes: &[DIGITS, THREE_DIGITS],
            ..cuts(&[FALCON_PUNCTUATION, GPT2])
        },
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0"
        | "lfm2" | "jina-v5-nano" => {
            PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[LLAMA3]) }
        }
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => cuts(&[LLAMA3]),
        "qwen2" | "deepseek-r1-qwen" | "kormo" | "megrez" | "f2llmv2" => {
            PreTokenizer { nfc: true, ..cuts(&[QWEN2]) }
        }
        "stablelm2" | "hunyuan" | "solar-open" | "grok-2" => cuts(&[QWEN2]),
        "qwen35" => PreTokenizer { nfc: true, ..cuts(&[QWEN35]) },
        "tekken" => PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[TEKKEN]) },
        "gpt-4o" | "llama4" | "kanana2" | "talkie" | "minimax-m2" => cuts(&[GPT4O]),
        "deepseek-llm" => cuts(&[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-퟿]+",
            DIGIT,
        ]),
        "deepseek-coder" => {
            cuts(&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", DIGIT])
        }
        "deepseek-v3" | "hunyuan-dense" => cuts(&[UP_TO_THREE_DIGITS, HAN_AND_KANA, DEEPSEEK3]),
        _ => return None,
    })
}

/// Whether an expression ends its matches in front of a space between letters, and behind a line's end before a letter,
/// whatever comes there.
pub fn cuts_words(expression: &str) -> bool {
    [GPT2, LLAMA3, QWEN2, QWEN35, TEKKEN, GPT4O, DEEPSEEK3].contains(&expression)
}

/// Whether an expression's matches have no white space, and nothing around them matters.
pub fn stays_within_words(expression: &str) -> bool {
    let punctuation = [PUNCTUATION, FALCON_PUNCTUATION];
    let digits = [DIGIT, DIGITS, UP_TO_THREE_DIGITS, THREE_DIGITS];
    punctuation.contains(&expression) || digits.contains(&expression) || expression == HAN_AND_KANA
}

impl PreTokenizer {
    pub fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| NFC.into())
    }

    /// The cuts around the step from bytes to the printable characters that byte-level vocabularies are written in.
    pub fn build(&self) -> Result<PreTokenizerWrapper, String> {
        let mut steps = splits(self.expressions)?;
        steps.push(ByteLevel::new(false, false, false).into());
        steps.extend(splits(self.expressions_on_bytes)?);
        Ok(Sequence::new(steps).into())
    }
}

fn splits(expressions: &[&str]) -> Result<Vec<PreTokenizerWrapper>, String> {
    let split = |expression: &&str| {
        let pattern = SplitPattern::Regex((*expression).to_string());
        Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
            .map(PreTokenizerWrapper::from)
            .map_err(|e| format!("expression {expression}: {e}"))
    };
    expressions.iter().map(split).collect()
}
