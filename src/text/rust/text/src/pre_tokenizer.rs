//! The pre-tokenizers that `tokenizer.ggml.pre` names. They cut a text into pieces before merges.
//!
//! The expressions are those of the checkpoints' own tokenizer.json (Oniguruma syntax), so that ids equal the
//! original's. If a GGUF name is used for several checkpoints, they have the same expression. The names are
//! llama.cpp's. llama.cpp only approximates some expressions: it ignores case, does not count marks as letters, and
//! knows only ASCII digits.

use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

macro_rules! contraction {
    () => {
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    };
}
macro_rules! white_space {
    () => {
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}
/// Words, numbers as cut by `$digits`, and other characters with the line ends after them.
macro_rules! words_and_digits {
    ($digits:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?\p{L}+|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
            white_space!()
        )
    };
}
/// Words that end before an upper-case letter, with `$suffix` after them. `$but` excludes characters from the letters.
macro_rules! cased_words {
    ($but:literal, $suffix:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
            $but,
            r"]*[\p{Ll}\p{Lm}\p{Lo}\p{M}",
            $but,
            "]+",
            $suffix,
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
            $but,
            r"]+[\p{Ll}\p{Lm}\p{Lo}\p{M}",
            $but,
            "]*",
            $suffix,
            "|"
        )
    };
}
macro_rules! optional_contraction {
    () => {
        concat!(contraction!(), "?")
    };
}
macro_rules! slashes_and_white_space {
    () => {
        concat!(r"| ?[^\s\p{L}\p{N}]+[\r\n/]*", white_space!())
    };
}
/// DeepSeek V3's words and punctuation. `$line_ends` is the expression for the line ends after punctuation.
macro_rules! marked_words {
    ($line_ends:literal) => {
        concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
            r"| ?[\p{P}\p{S}]+",
            $line_ends,
            r"|\s+(?!\S)|\s+"
        )
    };
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = concat!(contraction!(), "|", words_and_digits!(r"\p{N}{1,3}"));
const QWEN2: &str = concat!(contraction!(), "|", words_and_digits!(r"\p{N}"));
const MINICPM5: &str = concat!(contraction!(), "|", words_and_digits!(r"\p{N}+"));
const UFAKZEKA: &str = words_and_digits!(r"\p{N}");
const JAIS2: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)",
    r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
);
const SEED_CODER: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+",
    white_space!()
);
/// Words separated by single spaces are one piece.
const EXAONE_MOE: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?",
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
);
const QWEN35: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    white_space!()
);
const TEKKEN: &str = concat!(cased_words!("", ""), r"\p{N}", slashes_and_white_space!());
const GPT4O: &str =
    concat!(cased_words!("", optional_contraction!()), r"\p{N}{1,3}", slashes_and_white_space!());
const YOUTU: &str =
    concat!(cased_words!("", optional_contraction!()), r"\p{N}", slashes_and_white_space!());
const KIMI_K2: &str = concat!(
    r"[\p{Han}]+|",
    cased_words!(r"&&[^\p{Han}]", optional_contraction!()),
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    white_space!()
);
const BLOOM: &str = " ?[^(\\s|.,!?…。，、।۔،)]+";
// Letters that have case. They are written as numbers, because some are not in composed form.
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
const DEEPSEEK3: &str = marked_words!(r"[\r\n]*|\s*[\r\n]+");
const SPARK: &str = marked_words!(r"|[\r\n]");
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";
const FALCON_PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]+";
const CHAMELEON_PUNCTUATION: &str = r"[\p{P}!-/:-@\[-`{-~]";
const DIGIT: &str = r"\p{N}";
const DIGITS: &str = r"\p{N}+";
const UP_TO_THREE_DIGITS: &str = r"\p{N}{1,3}";
const THREE_DIGITS: &str = "[0-9][0-9][0-9]";
const THREE_NUMBERS: &str = r"\p{N}{3}";
const HAN_AND_KANA: &str = "[一-龥぀-ゟ゠-ヿ]+";
const YOUTU_SCRIPTS: &str = concat!(
    "[\u{AC00}-\u{D7A3}\u{3131}-\u{318E}]+|[！…“”‘’—：；，\u{3001}-\u{303F}\u{FE30}-\u{FE4F}]+",
    "|[\u{3105}-\u{312F}]+|[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+"
);
const AFMOE_SCRIPTS: &str = concat!(
    "[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{8C48}-\u{FAFF}\u{3040}-\u{309F}\u{30A0}-\u{30FF}",
    "\u{FF65}-\u{FF9F}\u{2F00}-\u{2FDF}\u{E40}-\u{E7F}\u{E80}-\u{EFF}\u{1780}-\u{17FF}",
    "\u{1000}-\u{109F}\u{AA60}-\u{AA7F}\u{A9E0}-\u{A9FF}\u{AC00}-\u{D7AF}\u{1100}-\u{11FF}]+"
);
const CHAMELEON_SENTINEL: &str = "<sentinel:[0-9]+>";
const CHAMELEON_IMAGE: &str = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z";
const CHAMELEON_SPACES: &str = r"([\t\n]|    |  )";
const LINES: &str = r"[^\n]+|[\n]+";

// Groups of three digits, counted from the right. A look-ahead at each digit would take time quadratic in their number.
// So each of these expressions looks ahead once, at the start of a run of digits.

/// A run of digits at the end of a word.
const DIGITS_OF_A_WORD: &str = r"(?<!\d)\d++\b";
/// The one or two digits before the groups of three, in a piece that is all digits.
const LEADING_DIGITS: &str = r"\A\d{1,2}(?=(?>(?:\d{3})*)\z)";
const LEADING_NUMBERS: &str = r"\A\p{N}{1,2}(?=(?>(?:\p{N}{3})*)\z)";
/// The text from one group of three to the next. Numeric characters that are not digits join the text before them.
const SUPERBPE_THREES: &str = concat!(
    r"(?:\A(?:\d{1,2}(?=(?>(?:\d{3})*)(?!\d))|(?=\D))|\d{3})",
    r"(?:\D+\d{0,2}(?=(?>(?:\d{3})*)(?!\d)))*"
);

/// How a vocabulary spells text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// A printable character for each byte.
    Bytes,
    /// The text's own characters, with U+2581 for a space and <0xNN> for bytes.
    Characters,
}

/// How a named pre-tokenizer cuts text, and other properties of its checkpoints.
pub struct PreTokenizer {
    pub spelling: Spelling,
    /// Applied one after another. Each match becomes a piece of its own, and so does the text between matches.
    pub expressions: &'static [&'static str],
    /// Applied to the characters that encode bytes, if a checkpoint cuts there too.
    pub expressions_on_bytes: &'static [&'static str],
    /// Applies Unicode composition (NFC) before anything else, as in Qwen's tokenizer.json.
    pub nfc: bool,
    /// A piece that equals a token becomes that token without merges.
    pub ignore_merges: bool,
    /// Whether a text starts with the BOS token if the file does not say.
    pub adds_bos: bool,
    /// A text starts with the BOS token even if the file says otherwise.
    pub always_adds_bos: bool,
    /// The special token that absorbs the white space before it; empty: none.
    pub strips_before: &'static str,
}

const fn cuts(expressions: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer {
        spelling: Spelling::Bytes,
        expressions,
        expressions_on_bytes: &[],
        nfc: false,
        ignore_merges: false,
        adds_bos: false,
        always_adds_bos: false,
        strips_before: "",
    }
}

/// No cuts: merges apply to the whole text.
const CHARACTERS: PreTokenizer = PreTokenizer { spelling: Spelling::Characters, ..cuts(&[]) };

/// Names, separated by spaces, and their pre-tokenizers. All names of llama.cpp are here except "whitespace", which is
/// for embeddings and drops the spaces where it cuts.
const TABLE: &[(&str, PreTokenizer)] = &[
    (
        "gpt-2 phi-2 jina-es jina-de jina-v1-en roberta-bpe gigachat exaone4 mellum a.x-4.0 mpt olmo \
         jais trillion granite-docling",
        cuts(&[GPT2]),
    ),
    (
        "jina-v2-es jina-v2-de jina-v2-code",
        PreTokenizer { strips_before: "<mask>", ..cuts(&[GPT2]) },
    ),
    ("modern-bert", PreTokenizer { strips_before: "[MASK]", ..cuts(&[GPT2]) }),
    ("default", cuts(&[PUNCTUATION, GPT2, DIGITS, THREE_DIGITS])),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", cuts(&[DIGIT, GPT2])),
    (
        "falcon",
        PreTokenizer {
            expressions_on_bytes: &[DIGITS, THREE_DIGITS],
            ..cuts(&[FALCON_PUNCTUATION, GPT2])
        },
    ),
    (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[LLAMA3]) },
    ),
    ("glm4 glm5", PreTokenizer { ignore_merges: true, ..cuts(&[LLAMA3]) }),
    ("dbrx smaug-bpe chatglm-bpe", cuts(&[LLAMA3])),
    ("minicpm5", PreTokenizer { ignore_merges: true, ..cuts(&[UP_TO_THREE_DIGITS, MINICPM5]) }),
    ("jais-2", cuts(&[JAIS2])),
    ("qwen2 deepseek-r1-qwen kormo megrez f2llmv2", PreTokenizer { nfc: true, ..cuts(&[QWEN2]) }),
    ("stablelm2 hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe", cuts(&[QWEN2])),
    ("laguna", cuts(&[LINES, QWEN2])),
    ("qwen35", PreTokenizer { nfc: true, ..cuts(&[QWEN35]) }),
    ("ufakzeka", cuts(&[UFAKZEKA])),
    ("seed-coder", cuts(&[SEED_CODER])),
    ("exaone-moe", cuts(&[EXAONE_MOE])),
    ("tekken", PreTokenizer { ignore_merges: true, adds_bos: true, ..cuts(&[TEKKEN]) }),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", cuts(&[GPT4O])),
    ("granite-embed-multi-97m", PreTokenizer { ignore_merges: true, ..cuts(&[GPT4O]) }),
    ("tiny_aya cohere2moe", cuts(&[DIGITS_OF_A_WORD, LEADING_DIGITS, GPT4O])),
    ("youtu", PreTokenizer { ignore_merges: true, ..cuts(&[YOUTU_SCRIPTS, YOUTU]) }),
    ("kimi-k2", cuts(&[KIMI_K2])),
    (
        "deepseek-llm",
        cuts(&[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-퟿]+",
            DIGIT,
        ]),
    ),
    ("deepseek-coder", cuts(&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", DIGIT])),
    (
        "deepseek-v3 hunyuan-dense hy_v4 joyai-llm",
        cuts(&[UP_TO_THREE_DIGITS, HAN_AND_KANA, DEEPSEEK3]),
    ),
    ("spark2_5", cuts(&[UP_TO_THREE_DIGITS, HAN_AND_KANA, SPARK, DIGIT])),
    ("afmoe", cuts(&[DIGITS, LEADING_NUMBERS, THREE_NUMBERS, AFMOE_SCRIPTS, DEEPSEEK3])),
    ("bloom poro-chat gpt3-finnish", cuts(&[BLOOM])),
    ("viking", cuts(&[BLOOM, DIGIT])),
    ("superbpe", cuts(&[DIGITS, SUPERBPE_THREES])),
    (
        "chameleon",
        PreTokenizer {
            adds_bos: true,
            ..cuts(&[
                CHAMELEON_SENTINEL,
                CHAMELEON_IMAGE,
                CHAMELEON_SPACES,
                DIGIT,
                CHAMELEON_PUNCTUATION,
                GPT2,
            ])
        },
    ),
    ("gemma4 granite-embed-multi-311m", PreTokenizer { always_adds_bos: true, ..CHARACTERS }),
    ("sarvam-moe", CHARACTERS),
];

/// Returns the pre-tokenizer of a name; None if it is unknown. A file without the key has the empty name.
pub fn find(name: &str) -> Option<&'static PreTokenizer> {
    let name = if name.is_empty() { "default" } else { name };
    TABLE.iter().find(|(names, _)| names.split(' ').any(|each| each == name)).map(|(_, pre)| pre)
}

/// Returns whether an expression always ends a match before a space between letters, and after a line end before a
/// letter.
pub fn cuts_words(expression: &str) -> bool {
    [
        GPT2, LLAMA3, QWEN2, MINICPM5, UFAKZEKA, JAIS2, SEED_CODER, QWEN35, TEKKEN, GPT4O, YOUTU,
        KIMI_K2, DEEPSEEK3, SPARK, BLOOM,
    ]
    .contains(&expression)
}

/// Returns whether an expression's matches on one side of such a place do not depend on the other side. A match across
/// the place is no problem, because the other expressions cut it.
pub fn looks_at_one_side(expression: &str) -> bool {
    let punctuation = [PUNCTUATION, FALCON_PUNCTUATION, CHAMELEON_PUNCTUATION];
    let digits = [DIGIT, DIGITS, UP_TO_THREE_DIGITS, THREE_DIGITS, THREE_NUMBERS];
    let threes = [DIGITS_OF_A_WORD, LEADING_DIGITS, LEADING_NUMBERS];
    let scripts = [HAN_AND_KANA, YOUTU_SCRIPTS, AFMOE_SCRIPTS];
    let others = [CHAMELEON_SENTINEL, CHAMELEON_IMAGE, CHAMELEON_SPACES, LINES];
    let known: [&[&str]; 5] = [&punctuation, &digits, &threes, &scripts, &others];
    known.iter().any(|group| group.contains(&expression))
}

impl PreTokenizer {
    pub fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| NFC.into())
    }

    /// Builds the steps: cuts, then the conversion from bytes to the printable characters of byte-level vocabularies,
    /// then more cuts.
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
