//! Connects Rust's text libraries to C++: tokenizers, minijinja for chat templates, llguidance for grammars.
//!
//! Every function returns a Result, except three that read a flag (is_full, is_stopped, is_busy). An error arrives in
//! C++ as an exception, and the wrappers in src/text convert it to a Status. No panic leaves this crate. A panic is a
//! bug here or in a library, and the caller gets it as an error.

use std::time::Duration;

use pagoda_sandbox::{Limits, caught};

mod digit_runs;
mod gbnf;
mod gguf;
mod grammar;
mod json_grammar;
mod lexer_masks;
mod long_texts;
mod messages;
mod pieces;
mod pre_tokenizer;
mod template;
mod tokenizer;
mod views;

#[cxx::bridge(namespace = "pagoda::rust_text")]
mod ffi {
    /// Mirrors text/sandbox_limits.h.
    struct SandboxLimits {
        num_bytes: u64,
        num_milliseconds: u64,
    }

    /// Properties of the pre-tokenizer that tokenizer.ggml.pre names.
    struct PreTokenizerFacts {
        is_known: bool,
        adds_bos: bool,
        always_adds_bos: bool,
    }

    /// The ids around and between two texts that a model reads as one pair.
    struct PairParts {
        before: Vec<i32>,
        between: Vec<i32>,
        after: Vec<i32>,
    }

    extern "C++" {
        include!("pagoda_text_rust/src/views.rs.h");
        type ChatInputView<'a> = crate::views::ChatInputView<'a>;
        type GgufVocabularyView<'a> = crate::views::GgufVocabularyView<'a>;
        type GrammarKind = crate::views::GrammarKind;
    }

    extern "Rust" {
        type Tokenizer;
        fn pre_tokenizer_facts(name: &[u8]) -> Result<PreTokenizerFacts>;
        fn tokenizer_from_json(json: &[u8]) -> Result<Box<Tokenizer>>;
        fn tokenizer_from_gguf(vocabulary: &GgufVocabularyView) -> Result<Box<Tokenizer>>;
        fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<i32>>;
        fn pair_parts(&self) -> Result<PairParts>;
        fn longest_piece(&self, text: &[u8]) -> Result<usize>;
        fn decode(&self, ids: &[i32], skip_special_tokens: bool) -> Result<String>;
        fn id_to_token(&self, id: i32) -> Result<String>;
        fn token_bytes(&self, id: i32) -> Result<Vec<u8>>;
        fn token_to_id(&self, token: &[u8]) -> Result<i32>;
        fn is_special(&self, id: i32) -> Result<bool>;
        fn vocab_size(&self) -> Result<u32>;
        fn detokenizer(
            &self,
            skip_special_tokens: bool,
            continues: bool,
        ) -> Result<Box<Detokenizer>>;
    }

    extern "Rust" {
        type Detokenizer;
        fn push(&mut self, id: i32) -> Result<String>;
        fn finish(&mut self) -> Result<String>;
    }

    extern "Rust" {
        type GrammarCompiler;
        fn grammar_compiler(
            tokenizer: &Tokenizer,
            eos: &[i32],
            limits: SandboxLimits,
        ) -> Result<Box<GrammarCompiler>>;
        fn is_full(&self) -> bool;
        fn compile(
            &self,
            kind: GrammarKind,
            text: &[u8],
            white_space: &[u8],
        ) -> Result<Box<GrammarState>>;
    }

    extern "Rust" {
        type GrammarState;
        fn copy(&self) -> Result<Box<GrammarState>>;
        fn fill_mask(&mut self, bits: &mut [u32]) -> Result<()>;
        fn accept(&mut self, id: i32) -> Result<()>;
        fn is_stopped(&self) -> bool;
    }

    extern "Rust" {
        type Template;
        fn template_from_text(
            name: &[u8],
            text: &[u8],
            limits: SandboxLimits,
        ) -> Result<Box<Template>>;
        fn is_busy(&self) -> bool;
        fn render(&self, input: &ChatInputView, num_microseconds_left: &mut u64) -> Result<String>;
    }
}

pub struct Tokenizer(tokenizer::TextTokenizer);
pub struct Detokenizer(tokenizer::TextDetokenizer);
pub struct Template(template::TextTemplate);
pub struct GrammarCompiler(grammar::GrammarCompiler);
pub struct GrammarState(grammar::GrammarState);

fn pre_tokenizer_facts(name: &[u8]) -> Result<ffi::PreTokenizerFacts, String> {
    caught(|| {
        let found = std::str::from_utf8(name).ok().and_then(pre_tokenizer::find);
        Ok(ffi::PreTokenizerFacts {
            is_known: found.is_some(),
            adds_bos: found.is_some_and(|pre| pre.adds_bos),
            always_adds_bos: found.is_some_and(|pre| pre.always_adds_bos),
        })
    })
}

fn tokenizer_from_json(json: &[u8]) -> Result<Box<Tokenizer>, String> {
    caught(|| Ok(Box::new(Tokenizer(tokenizer::tokenizer_from_json(json)?))))
}

fn tokenizer_from_gguf(vocabulary: &ffi::GgufVocabularyView) -> Result<Box<Tokenizer>, String> {
    caught(|| Ok(Box::new(Tokenizer(tokenizer::tokenizer_from_gguf(vocabulary)?))))
}

fn limits_of(limits: ffi::SandboxLimits) -> Limits {
    let num_bytes = usize::try_from(limits.num_bytes).unwrap_or(usize::MAX);
    Limits { num_bytes, time: Duration::from_millis(limits.num_milliseconds) }
}

fn template_from_text(
    name: &[u8],
    text: &[u8],
    limits: ffi::SandboxLimits,
) -> Result<Box<Template>, String> {
    caught(|| {
        let template = template::TextTemplate::from_text(name, text, limits_of(limits))?;
        Ok(Box::new(Template(template)))
    })
}

fn grammar_compiler(
    tokenizer: &Tokenizer,
    eos: &[i32],
    limits: ffi::SandboxLimits,
) -> Result<Box<GrammarCompiler>, String> {
    caught(|| {
        let compiler = grammar::GrammarCompiler::new(&tokenizer.0, eos, limits_of(limits))?;
        Ok(Box::new(GrammarCompiler(compiler)))
    })
}

impl Tokenizer {
    fn encode(
        &self,
        text: &[u8],
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<i32>, String> {
        caught(|| self.0.encode(text, add_special, parse_special))
    }
    fn pair_parts(&self) -> Result<ffi::PairParts, String> {
        caught(|| {
            let [before, between, after] = self.0.pair_parts()?;
            Ok(ffi::PairParts { before, between, after })
        })
    }
    fn longest_piece(&self, text: &[u8]) -> Result<usize, String> {
        caught(|| self.0.longest_piece(text))
    }
    fn decode(&self, ids: &[i32], skip_special_tokens: bool) -> Result<String, String> {
        caught(|| Ok(self.0.decode(ids, skip_special_tokens)))
    }
    fn id_to_token(&self, id: i32) -> Result<String, String> {
        caught(|| Ok(self.0.id_to_token(id)))
    }
    fn token_bytes(&self, id: i32) -> Result<Vec<u8>, String> {
        caught(|| Ok(self.0.token_bytes(id)))
    }
    fn token_to_id(&self, token: &[u8]) -> Result<i32, String> {
        caught(|| Ok(self.0.token_to_id(token)))
    }
    fn is_special(&self, id: i32) -> Result<bool, String> {
        caught(|| Ok(self.0.is_special(id)))
    }
    fn vocab_size(&self) -> Result<u32, String> {
        Ok(self.0.vocab_size())
    }
    fn detokenizer(
        &self,
        skip_special_tokens: bool,
        continues: bool,
    ) -> Result<Box<Detokenizer>, String> {
        caught(|| Ok(Box::new(Detokenizer(self.0.detokenizer(skip_special_tokens, continues)))))
    }
}

impl Detokenizer {
    fn push(&mut self, id: i32) -> Result<String, String> {
        caught(|| Ok(self.0.push(id)))
    }
    fn finish(&mut self) -> Result<String, String> {
        caught(|| Ok(self.0.finish()))
    }
}

impl Template {
    fn is_busy(&self) -> bool {
        self.0.is_busy()
    }
    fn render(
        &self,
        input: &ffi::ChatInputView,
        num_microseconds_left: &mut u64,
    ) -> Result<String, String> {
        let mut time_left = Duration::from_micros(*num_microseconds_left);
        let rendered = caught(|| self.0.render(input, &mut time_left));
        *num_microseconds_left = u64::try_from(time_left.as_micros()).unwrap_or(u64::MAX);
        rendered
    }
}

impl GrammarCompiler {
    fn is_full(&self) -> bool {
        self.0.is_full()
    }
    fn compile(
        &self,
        kind: ffi::GrammarKind,
        text: &[u8],
        white_space: &[u8],
    ) -> Result<Box<GrammarState>, String> {
        caught(|| Ok(Box::new(GrammarState(self.0.compile(kind, text, white_space)?))))
    }
}

impl GrammarState {
    fn copy(&self) -> Result<Box<GrammarState>, String> {
        caught(|| Ok(Box::new(GrammarState(self.0.clone()))))
    }
    fn fill_mask(&mut self, bits: &mut [u32]) -> Result<(), String> {
        caught(|| self.0.fill_mask(bits))
    }
    fn accept(&mut self, id: i32) -> Result<(), String> {
        caught(|| self.0.accept(id))
    }
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}
