//! Caches masks of a grammar by the state of its lexer.
//!
//! As long as a token's bytes end no lexeme, the lexer's state alone decides whether the token is allowed. A text
//! reaches the same states again and again, for example after the same number of characters of a string of limited
//! length. If a mask took a long walk over the trie, its part for tokens of plain text is cached. Later masks of that
//! state walk only the other tokens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokTrie};

/// A walk is long if it visits at least 1/32 of the vocabulary's trie: 20 µs for a vocabulary of 50,000 tokens.
const LONG_WALK: usize = 32;
/// Limits for one grammar.
const MAX_STATES: usize = 1024;
const MAX_MASK_BYTES: usize = 2 << 20;

/// The trie of the vocabulary, split into tokens of plain text and all others.
pub struct SplitTrie {
    plain: TokTrie,
    others: TokTrie,
}

impl SplitTrie {
    pub fn new(trie: &TokTrie) -> SplitTrie {
        let mut is_plain = trie.alloc_token_set();
        for id in 0..trie.vocab_size() as u32 {
            is_plain.set(id as usize, is_plain_text(trie.token(id)));
        }
        let mut is_other = trie.alloc_token_set();
        is_other.set_all(true);
        is_other.sub(&is_plain);
        SplitTrie { plain: trie.filter(&is_plain), others: trie.filter(&is_other) }
    }
}

/// Returns whether a token is plain text, which rarely ends a lexeme.
fn is_plain_text(token: &[u8]) -> bool {
    let ends = |c: char| c.is_control() || c == '"' || c == '\\';
    !token.is_empty() && std::str::from_utf8(token).is_ok_and(|text| !text.contains(ends))
}

enum Entry {
    /// A walk from this state was long.
    Seen,
    /// A token of plain text ends a lexeme here, so only the parser can say whether it is allowed.
    NeedsParser,
    /// The mask of the plain tokens.
    Mask(SimpleVob),
}

#[derive(Default)]
struct Entries {
    of_state: HashMap<StateID, Entry>,
    num_bytes: usize,
}

/// The cached masks of one grammar. Its samples share the lexer and the lexer's states.
pub struct LexerMasks {
    trie: Arc<SplitTrie>,
    slices: Arc<dyn BiasComputer>,
    entries: Mutex<Entries>,
    /// The memory of all grammars, to which these masks add theirs.
    num_kept_bytes: Arc<AtomicUsize>,
}

impl LexerMasks {
    /// Makes the cache. `slices` computes the masks that are not cached.
    pub fn new(
        trie: Arc<SplitTrie>,
        slices: Arc<dyn BiasComputer>,
        num_kept_bytes: Arc<AtomicUsize>,
    ) -> LexerMasks {
        LexerMasks { trie, slices, entries: Mutex::default(), num_kept_bytes }
    }

    /// Computes a mask by a walk, and records the state if the walk was long.
    fn compute(&self, recognizer: &mut ParserRecognizer<'_>, entries: &mut Entries) -> SimpleVob {
        let state = recognizer.lexer_state();
        let num_before = recognizer.stats_mut().trie_nodes_walked;
        let mask = self.slices.compute_bias(recognizer, &[]);
        let num_walked = recognizer.stats_mut().trie_nodes_walked - num_before;
        let is_long = num_walked >= self.trie().root().subtree_size() / LONG_WALK;
        if is_long && entries.of_state.len() < MAX_STATES {
            entries.of_state.entry(state).or_insert(Entry::Seen);
        }
        mask
    }

    fn walk_plain(&self, recognizer: &mut ParserRecognizer<'_>, entries: &mut Entries) {
        let state = recognizer.lexer_state();
        let num_bytes = self.trie.plain.vocab_size() / 8;
        if entries.num_bytes + num_bytes > MAX_MASK_BYTES {
            return;
        }
        let mut mask = self.trie.plain.alloc_token_set();
        let mut walk = LexerWalk { recognizer, states: vec![state], needs_parser: false };
        self.trie.plain.add_bias(&mut walk, &mut mask, &[]);
        if walk.needs_parser {
            entries.of_state.insert(state, Entry::NeedsParser);
            return;
        }
        entries.of_state.insert(state, Entry::Mask(mask));
        entries.num_bytes += num_bytes;
        self.num_kept_bytes.fetch_add(num_bytes, Ordering::Relaxed);
    }
}

impl Drop for LexerMasks {
    fn drop(&mut self) {
        let entries = self.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.num_kept_bytes.fetch_sub(entries.num_bytes, Ordering::Relaxed);
    }
}

impl BiasComputer for LexerMasks {
    fn compute_bias(&self, recognizer: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        if !start.is_empty() {
            return self.slices.compute_bias(recognizer, start);
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let state = recognizer.lexer_state();
        if matches!(entries.of_state.get(&state), Some(Entry::Seen)) {
            self.walk_plain(recognizer, &mut entries);
        }
        let Some(Entry::Mask(plain)) = entries.of_state.get(&state) else {
            return self.compute(recognizer, &mut entries);
        };
        let mut mask = plain.clone();
        self.trie.others.add_bias(recognizer, &mut mask, &[]);
        mask
    }

    fn trie(&self) -> &TokTrie {
        self.slices.trie()
    }
}

/// Walks the trie with the lexer alone, which is correct until a lexeme may end.
struct LexerWalk<'a, 'b> {
    recognizer: &'a mut ParserRecognizer<'b>,
    states: Vec<StateID>,
    needs_parser: bool,
}

impl Recognizer for LexerWalk<'_, '_> {
    fn pop_bytes(&mut self, num: usize) {
        self.states.truncate(self.states.len() - num);
    }

    fn collapse(&mut self) {}

    fn trie_finished(&mut self) {}

    fn try_push_byte(&mut self, byte: u8) -> bool {
        let state = self.states[self.states.len() - 1];
        let lexer = self.recognizer.lexer_mut();
        let next = lexer.transition_start_state(state, Some(byte), &None);
        if next.is_dead() || next.has_lowest_match() {
            self.needs_parser |= !lexer.advance(state, byte, false, &None).is_error();
            return false;
        }
        self.states.push(next);
        !self.needs_parser
    }
}
