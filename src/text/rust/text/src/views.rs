//! The part of the bridge that the modules use: structs that C++ passes. lib.rs has the other part, which uses the
//! modules.

#[cxx::bridge(namespace = "pagoda::rust_text")]
mod ffi {
    /// text/gguf_vocabulary.h after its checks. An id of -1 means none.
    struct GgufVocabularyView<'a> {
        is_sentence_piece: bool,
        pre: &'a [u8],
        tokens: &'a CxxVector<CxxString>,
        scores: &'a [f32],
        token_types: &'a [i32],
        merges: &'a CxxVector<CxxString>,
        bos_token_id: i32,
        eos_token_id: i32,
        unk_token_id: i32,
        add_space_prefix: bool,
        metaspace: &'a [u8],
        strips_behind_special: bool,
    }

    struct ChatInputView<'a> {
        messages: &'a [u8],
        tools: &'a [u8],
        kwargs: &'a [u8],
        bos_token: &'a [u8],
        eos_token: &'a [u8],
        add_generation_prompt: bool,
        continue_final_message: bool,
        unix_time: i64,
    }

    /// The kind of a grammar's text; see text/grammar.h.
    enum GrammarKind {
        JsonSchema,
        Regex,
        Choice,
        ContextFree,
        Answer,
    }
}

pub use ffi::{ChatInputView, GgufVocabularyView, GrammarKind};
