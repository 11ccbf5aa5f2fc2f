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
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώ",
    r"ᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⲳⲳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ",
    r"𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// How one name cuts text, and what else the checkpoints behind it do.
pub struct PreTokenizer {
    /// Applied one after the other: each match becomes a piece of its own, and so does what lies between matches.
    pub expressions: &'static [&'static str],
    /// Unicode composition before anything else, as in Qwen's tokenizer.json.
    pub nfc: bool,
    /// A piece that is a token as a whole is taken without merging.
    pub ignore_merges: bool,
    /// Whether a text starts with the BOS token where the file does not say.
    pub adds_bos: bool,
}

const fn cuts(expressions: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer { expressions, nfc: false, ignore_merges: false, adds_bos: false }
}

/// The pre-tokenizer of a name, or None for an unknown one. A file without the key has the empty name.
pub fn find(name: &str) -> Option<PreTokenizer> {
    Some(match name {
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "jina-v1-en" | "jina-v2-es" | "jina-v2-de"
        | "jina-v2-code" | "roberta-bpe" | "gigachat" | "exaone4" | "mellum" | "modern-bert"
        | "a.x-4.0" | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling" => cuts(&[GPT2]),
        "" | "default" => cuts(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b"
        | "mellum2" => cuts(&[r"\p{N}", GPT2]),
        "falcon" => cuts(&[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0"
        | "lfm2" => PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[LLAMA3]) },
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => cuts(&[LLAMA3]),
        "qwen2" | "deepseek-r1-qwen" | "kormo" => PreTokenizer { nfc: true, ..cuts(&[QWEN2]) },
        "stablelm2" | "hunyuan" | "megrez" | "solar-open" | "grok-2" => cuts(&[QWEN2]),
        "qwen35" => PreTokenizer { nfc: true, ..cuts(&[QWEN35]) },
        "tekken" => PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[TEKKEN]) },
        "gpt-4o" | "llama4" | "kanana2" | "minimax-m2" => cuts(&[GPT4O]),
        "deepseek-llm" => cuts(&[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-퟿]+",
            r"\p{N}",
        ]),
        "deepseek-coder" => {
            cuts(&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"])
        }
        "deepseek-v3" | "hunyuan-dense" => cuts(&[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3]),
        _ => return None,
    })
}

impl PreTokenizer {
    pub fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| NFC.into())
    }

    /// The cuts, then bytes to the printable characters that byte-level vocabularies are written in.
    pub fn build(&self) -> Result<PreTokenizerWrapper, String> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
        for expression in self.expressions {
            let pattern = SplitPattern::Regex((*expression).to_string());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
                .map_err(|e| format!("expression {expression}: {e}"))?;
            steps.push(split.into());
        }
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps).into())
    }
}
