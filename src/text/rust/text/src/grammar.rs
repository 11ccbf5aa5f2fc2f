//! Compiled grammars for text/grammar.h: llguidance with the vocabulary of one of our tokenizers.
//!
//! A grammar comes from a client. Its compilation runs in a sandbox (pagoda_sandbox), with limits of memory and time
//! besides llguidance's own. Its memory is counted as long as one of its states lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId,
};
use llguidance::{Logger, Matcher, ParserFactory};
use pagoda_sandbox::{Limits, Sandbox};

use crate::digit_runs::{DigitRun, DigitTokens};
use crate::gbnf;
use crate::json_grammar::JsonGrammar;
use crate::lexer_masks::{LexerMasks, SplitTrie};
use crate::tokenizer::TextTokenizer;
use crate::views::GrammarKind;

/// The most memory that all living grammars keep; see `is_full`.
const MAX_KEPT_BYTES: usize = 1 << 30;
/// Limits of the vocabulary's trie: bytes of one token, and of all tokens together.
const MAX_TOKEN_BYTES: usize = 1000;
const MAX_VOCABULARY_BYTES: usize = 4_000_000;
const MAX_MESSAGE_CHARS: usize = 400;
/// The line before a wrong pattern, the marks below it, and the reason, in regex-syntax's errors.
const DRAWING: &str = "regex parse error:";

struct Shared {
    factory: ParserFactory,
    split_trie: Arc<SplitTrie>,
    digit_tokens: DigitTokens,
    num_kept_bytes: Arc<AtomicUsize>,
    sandbox: Sandbox,
    limits: Limits,
}

pub struct GrammarCompiler(Arc<Shared>);

/// The memory of a compiled grammar, shared by its states. Drop subtracts it from the total.
struct Kept {
    shared: Arc<Shared>,
    num_bytes: usize,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shared.num_kept_bytes.fetch_sub(self.num_bytes, Ordering::Relaxed);
    }
}

/// A position in a text of the grammar.
#[derive(Clone)]
pub struct GrammarState {
    matcher: Matcher,
    /// The mask before the first token.
    first_mask: Arc<Vec<u32>>,
    is_fresh: bool,
    /// The run of digits at this position. None if the grammar has no JSON, because only JSON's numbers are limited.
    digits: Option<DigitRun>,
    kept: Arc<Kept>,
}

impl GrammarCompiler {
    /// Makes a compiler. `eos_ids`: tokens that end a text and are never part of it. `limits`: for each compilation.
    pub fn new(
        tokenizer: &TextTokenizer,
        eos_ids: &[i32],
        limits: Limits,
    ) -> Result<GrammarCompiler, String> {
        let vocab_size = tokenizer.vocab_size();
        let eos: Vec<TokenId> =
            eos_ids.iter().map(|&id| id as TokenId).filter(|&id| id < vocab_size).collect();
        let mut words: Vec<Vec<u8>> = (0..vocab_size)
            .map(|id| {
                let is_special = eos.contains(&id) || tokenizer.is_special(id as i32);
                if is_special {
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], tokenizer.id_to_token(id as i32).as_bytes()]
                        .concat()
                } else {
                    tokenizer.token_bytes(id as i32)
                }
            })
            .collect();
        leave_out_long_words(&mut words);
        let mut trie = TokTrie::from(&TokRxInfo::new(vocab_size, INVALID_TOKEN), &words);
        if !eos.is_empty() {
            trie = trie.with_eos_tokens(&eos);
        }
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment)
            .map_err(|error| one_line(&error.to_string()))?;
        factory.quiet();
        // llguidance initialises global data at first use. That must not happen in a job that may be stopped half-way.
        let first = factory.create_parser(TopLevelGrammar::from_regex("a"));
        first.map_err(|error| one_line(&error.to_string()))?;
        Ok(GrammarCompiler(Arc::new(Shared {
            factory,
            split_trie: Arc::new(SplitTrie::new(environment.tok_trie())),
            digit_tokens: DigitTokens::new(environment.tok_trie()),
            num_kept_bytes: Arc::default(),
            sandbox: Sandbox::default(),
            limits,
        })))
    }

    /// Returns whether living grammars use all the memory allowed, or overdue compilations take all places.
    pub fn is_full(&self) -> bool {
        self.0.num_kept_bytes.load(Ordering::Relaxed) >= MAX_KEPT_BYTES || self.0.sandbox.is_busy()
    }

    /// Compiles a grammar. `white_space`: the white space of JSON text; see JsonGrammar.
    pub fn compile(
        &self,
        kind: GrammarKind,
        text: &[u8],
        white_space: &[u8],
    ) -> Result<GrammarState, String> {
        let in_utf8 = |bytes: &[u8]| std::str::from_utf8(bytes).map(String::from);
        let text = in_utf8(text).map_err(|_| "expected UTF-8")?;
        let white_space = in_utf8(white_space).map_err(|_| "expected UTF-8")?;
        let shared = self.0.clone();
        let compiled =
            self.0.sandbox.run(self.0.limits, move || start(&shared, kind, &text, &white_space));
        let ((matcher, first_mask), num_bytes) = compiled.map_err(|failure| {
            one_line(
                &failure
                    .message(|message| format!("the grammar's compilation was stopped: {message}")),
            )
        })?;
        self.0.num_kept_bytes.fetch_add(num_bytes, Ordering::Relaxed);
        let kept = Arc::new(Kept { shared: self.0.clone(), num_bytes });
        let has_json = matches!(kind, GrammarKind::JsonSchema | GrammarKind::Answer);
        Ok(GrammarState {
            matcher,
            first_mask: Arc::new(first_mask),
            is_fresh: true,
            digits: has_json.then(DigitRun::default),
            kept,
        })
    }
}

impl GrammarState {
    /// Sets the bits of the tokens that may come next, and clears all others.
    pub fn fill_mask(&mut self, bits: &mut [u32]) -> Result<(), String> {
        bits.fill(0);
        if self.is_fresh {
            copy_bits(&self.first_mask, bits);
            return Ok(());
        }
        let mut mask = self.matcher.compute_mask_or_eos().map_err(|e| one_line(&e.to_string()))?;
        if let Some(digits) = &self.digits {
            digits.bound(&self.kept.shared.digit_tokens, &mut mask);
        }
        copy_bits(mask.as_slice(), bits);
        Ok(())
    }

    pub fn accept(&mut self, id: i32) -> Result<(), String> {
        self.is_fresh = false;
        if let Some(digits) = &mut self.digits {
            let environment = self.kept.shared.factory.tok_env();
            digits.accept(environment.tok_trie().token(id as TokenId));
        }
        let consumed = self.matcher.consume_token(id as TokenId);
        consumed.map_err(|error| one_line(&error.to_string()))
    }

    /// Returns whether only the end may follow.
    pub fn is_stopped(&self) -> bool {
        self.matcher.is_stopped()
    }
}

/// Empties the words that do not fit into the trie; no grammar allows them then.
fn leave_out_long_words(words: &mut [Vec<u8>]) {
    let mut max_bytes = MAX_TOKEN_BYTES;
    let mut num_bytes = usize::MAX;
    while num_bytes > MAX_VOCABULARY_BYTES {
        words.iter_mut().filter(|word| word.len() > max_bytes).for_each(Vec::clear);
        num_bytes = words.iter().map(Vec::len).sum();
        max_bytes /= 2;
    }
}

/// Returns the limits for one step of a text. A client's context-free grammar may be ambiguous, and then a row of n
/// items takes n^3 time: 20 ms for 1,000 items. Other grammars may have long rows that cost little, such as a list of
/// choices.
fn parser_limits(kind: GrammarKind) -> ParserLimits {
    let defaults = ParserLimits::default();
    let is_free = kind == GrammarKind::ContextFree;
    ParserLimits {
        max_items_in_row: if is_free { 1000 } else { defaults.max_items_in_row },
        step_max_items: if is_free { 10_000 } else { defaults.step_max_items },
        max_lexer_states: 50_000,
        step_lexer_fuel: 100_000,
        verbose_errors: false,
        ..defaults
    }
}

/// Replaces each escaped character beyond ASCII by an escape with its number, which regex-syntax knows. Python and
/// JavaScript read a backslash before such a character as the character itself.
fn escapes_beyond_ascii(pattern: &str) -> Result<String, String> {
    let mut escaped = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            escaped.push(character);
            continue;
        }
        match characters.next() {
            Some(next) if next.is_ascii() => escaped.extend([character, next]),
            Some(next) => escaped += &format!("\\x{{{:X}}}", next as u32),
            None => return Err("invalid regex: nothing is behind its last backslash".to_string()),
        }
    }
    Ok(escaped)
}

fn start(
    shared: &Shared,
    kind: GrammarKind,
    text: &str,
    white_space: &str,
) -> Result<(Matcher, Vec<u32>), String> {
    let mut schemas: Vec<(String, JsonGrammar)> = Vec::new();
    let grammar = match kind {
        GrammarKind::Regex if text.is_empty() => {
            return Err("expected a regular expression, got an empty text".into());
        }
        GrammarKind::Regex => TopLevelGrammar::from_regex(&escapes_beyond_ascii(text)?),
        GrammarKind::Choice => TopLevelGrammar::from_lark(choice(text)?),
        GrammarKind::ContextFree => TopLevelGrammar::from_lark(context_free(text)?),
        GrammarKind::Answer => TopLevelGrammar::from_lark(answer(text, white_space, &mut schemas)?),
        GrammarKind::JsonSchema => {
            schemas.push((String::new(), JsonGrammar::new(text, white_space)?));
            schemas[0].1.grammar()?
        }
        _ => return Err("unknown kind".into()),
    };
    let limits = parser_limits(kind);
    let parser = shared.factory.create_parser_from_init_ext(
        GrammarInit::Serialized(grammar),
        Logger::new(0, 0),
        InferenceCapabilities::default(),
        limits.clone(),
    );
    let mut parser = parser.map_err(|error| {
        let refused = schemas.iter().find(|(_, schema)| schema.is_refused(&limits));
        let found = refused.map(|(rule, schema)| {
            format!("{rule}{}", schema.with_place(&error.to_string(), &limits))
        });
        found.unwrap_or_else(|| match kind {
            GrammarKind::Regex => regex_error(&error.to_string()),
            _ => error.to_string(),
        })
    })?;
    parser.bias_computer = Arc::new(LexerMasks::new(
        shared.split_trie.clone(),
        parser.bias_computer,
        shared.num_kept_bytes.clone(),
    ));
    let mut matcher = Matcher::new(Ok(parser));
    let first_mask = matcher.compute_mask().map_err(|error| error.to_string())?;
    Ok((matcher, first_mask.as_slice().to_vec()))
}

fn choice(text: &str) -> Result<String, String> {
    let choices: Vec<String> =
        serde_json::from_str(text).map_err(|_| "expected a list of strings")?;
    if choices.is_empty() || choices.iter().any(String::is_empty) {
        return Err("expected at least one choice, and none empty".into());
    }
    let quoted: Vec<String> = choices.iter().map(|choice| gbnf::lark_text(choice)).collect();
    Ok(format!("start: {}", quoted.join(" | ")))
}

/// Translates GBNF. In Lark it refuses a sampling temperature, which llguidance would ignore, and JSON Schemas, which
/// would not be checked.
fn context_free(text: &str) -> Result<String, String> {
    if gbnf::is_gbnf(text) {
        return gbnf::to_lark(text);
    }
    for directive in ["%json", "temperature"] {
        if text.contains(directive) {
            return Err(format!("'{directive}' is not supported"));
        }
    }
    Ok(text.to_string())
}

/// Reads the Lark that answer/answer_grammar.h writes. A rule there may be a JSON Schema on a line of its own. Each
/// schema is checked separately, and added to `schemas` with its rule.
fn answer(
    text: &str,
    white_space: &str,
    schemas: &mut Vec<(String, JsonGrammar)>,
) -> Result<String, String> {
    let mut lark = String::new();
    for line in text.lines() {
        match line.split_once(": %json ") {
            Some((rule, schema)) if !rule.contains('"') => {
                let grammar = JsonGrammar::new(schema, white_space)
                    .map_err(|error| format!("{rule}: {error}"))?;
                let checked =
                    grammar.checked_schema().map_err(|error| format!("{rule}: {error}"))?;
                lark.push_str(&format!("{rule}: %json {checked}\n"));
                schemas.push((format!("{rule}: "), grammar));
            }
            _ => lark.extend([line, "\n"]),
        }
    }
    Ok(lark)
}

fn copy_bits(from: &[u32], to: &mut [u32]) {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
}

/// Returns the reason in an error about a client's regular expression. Around it there is Lark that is not the
/// client's.
fn regex_error(error: &str) -> String {
    let error = undrawn(error).unwrap_or_else(|| error.to_string());
    match error.split_once("(in regex): ") {
        Some((_, reason)) => format!("invalid regex: {}", reason.lines().next().unwrap_or(reason)),
        None => error,
    }
}

/// Replaces the drawing in an error of regex-syntax by the part of the pattern that it marks. Returns None if there is
/// no drawing.
fn undrawn(error: &str) -> Option<String> {
    let mut lines: Vec<&str> = error.lines().collect();
    let at = lines.iter().position(|line| line.ends_with(DRAWING))?;
    let before = lines[at].strip_suffix(DRAWING)?;
    let [pattern, marks, reason] = lines.get(at + 1..at + 4)? else { return None };
    let reason = reason.strip_prefix("error: ")?;
    let begin = marks.find('^')?;
    let marked: String = pattern.chars().skip(begin).take(marks.trim_end().len() - begin).collect();
    let said = format!("{before}{reason}, at '{marked}'");
    lines.splice(at..at + 4, [said.as_str()]);
    Some(lines.join("\n"))
}

/// Returns an error as one line of limited length, without the parser state that llguidance appends.
fn one_line(message: &str) -> String {
    let end = message.find("\n<").unwrap_or(message.len());
    let message = undrawn(&message[..end]).unwrap_or_else(|| message[..end].to_string());
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut line: String = lines.join("; ").chars().take(MAX_MESSAGE_CHARS + 1).collect();
    if line.chars().count() > MAX_MESSAGE_CHARS {
        line.pop();
        line.push_str("...");
    }
    line
}
