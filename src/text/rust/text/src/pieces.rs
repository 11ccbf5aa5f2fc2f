//! Converts tokens back to text, one token at a time.
//!
//! A `PieceRule` describes how the tokenizer's decoder changes single tokens. A `PieceStream` applies it, and holds
//! back the bytes of an incomplete character. Decoding a whole list uses the same stream, so both give the same text.

use serde_json::Value;
use tokenizers::Tokenizer;

const REPLACEMENT: &str = "\u{FFFD}";

pub enum PieceRule {
    /// Each character of a token encodes a byte (GPT-2's table).
    ByteLevel,
    /// SentencePiece: characters are replaced, <0xNN> tokens are bytes, and leading characters of the whole text are
    /// removed.
    SentencePiece {
        replacements: Vec<(String, String)>,
        byte_tokens: bool,
        strip: Option<(char, usize)>,
    },
    /// A character replaces the space. It is removed from the first token if the encoder added one there.
    Metaspace { replacement: char, drops_first: bool },
}

impl PieceRule {
    pub fn of(tokenizer: &Tokenizer) -> Result<PieceRule, String> {
        let decoder = serde_json::to_value(tokenizer.get_decoder()).map_err(|e| e.to_string())?;
        match type_of(&decoder) {
            "ByteLevel" => Ok(PieceRule::ByteLevel),
            "Metaspace" => metaspace(&decoder),
            "Sequence" => sequence(decoder["decoders"].as_array().map_or(&[], |steps| steps)),
            "Replace" | "ByteFallback" | "Fuse" => sequence(std::slice::from_ref(&decoder)),
            other => Err(unsupported(other)),
        }
    }

    /// Returns the bytes that a token adds in the middle of a text.
    pub fn bytes(&self, token: &str) -> Vec<u8> {
        match self {
            PieceRule::ByteLevel => byte_level_bytes(token),
            PieceRule::SentencePiece { replacements, byte_tokens, .. } => match byte_token(token) {
                Some(byte) if *byte_tokens => vec![byte],
                _ => replaced(token, replacements).into_bytes(),
            },
            PieceRule::Metaspace { replacement, .. } => {
                token.replace(*replacement, " ").into_bytes()
            }
        }
    }
}

fn type_of(step: &Value) -> &str {
    step["type"].as_str().unwrap_or("none")
}

fn unsupported(what: &str) -> String {
    format!("decoder: expected ByteLevel, Metaspace or SentencePiece's sequence, got {what}")
}

fn metaspace(step: &Value) -> Result<PieceRule, String> {
    let replacement = step["replacement"].as_str().and_then(|s| s.chars().next()).unwrap_or('▁');
    let drops_first = step["prepend_scheme"].as_str() != Some("never");
    Ok(PieceRule::Metaspace { replacement, drops_first })
}

fn sequence(steps: &[Value]) -> Result<PieceRule, String> {
    if let [only] = steps {
        match type_of(only) {
            "ByteLevel" => return Ok(PieceRule::ByteLevel),
            "Metaspace" => return metaspace(only),
            _ => {}
        }
    }
    let mut replacements = Vec::new();
    let (mut byte_tokens, mut fused, mut strip) = (false, false, None);
    for step in steps {
        match type_of(step) {
            "Replace" if !byte_tokens && !fused => {
                let (Some(from), Some(to)) =
                    (step["pattern"]["String"].as_str(), step["content"].as_str())
                else {
                    return Err(unsupported("a Replace by an expression"));
                };
                replacements.push((from.to_string(), to.to_string()));
            }
            "ByteFallback" => byte_tokens = true,
            "Fuse" => fused = true,
            "Strip" if fused && step["stop"].as_u64() == Some(0) => {
                let content = step["content"].as_str().and_then(|s| s.chars().next());
                let count = step["start"].as_u64().unwrap_or(0) as usize;
                strip = content.map(|c| (c, count));
            }
            other => return Err(unsupported(&format!("a sequence with {other}"))),
        }
    }
    Ok(PieceRule::SentencePiece { replacements, byte_tokens, strip })
}

fn replaced(token: &str, replacements: &[(String, String)]) -> String {
    let mut text = token.to_string();
    for (from, to) in replacements {
        text = text.replace(from.as_str(), to);
    }
    text
}

fn byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// Returns the byte that a character encodes in GPT-2's table. Printable bytes are encoded as themselves, the others as
/// U+0100 and up in order.
fn byte_of(character: char) -> Option<u8> {
    let code = character as u32;
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => Some(code as u8),
        0x100..=0x120 => Some((code - 0x100) as u8), // 0x00..=0x20
        0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8), // 0x7F..=0xA0
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// Returns a token's bytes. A token with a character outside the table (an added token) is its own UTF-8 text.
fn byte_level_bytes(token: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

pub struct PieceStream {
    pending: Vec<u8>,
    strip: Option<(char, usize)>,
    drops_first: bool,
}

impl PieceStream {
    /// Starts a stream. If it `continues` a text, it keeps the leading space that the start of a text loses.
    pub fn new(rule: &PieceRule, continues: bool) -> PieceStream {
        let mut stream = PieceStream { pending: Vec::new(), strip: None, drops_first: false };
        if continues {
            return stream;
        }
        match rule {
            PieceRule::SentencePiece { strip, .. } => stream.strip = *strip,
            PieceRule::Metaspace { drops_first, .. } => stream.drops_first = *drops_first,
            PieceRule::ByteLevel => {}
        }
        stream
    }

    /// Returns the text that is complete so far.
    pub fn push(&mut self, rule: &PieceRule, token: &str) -> String {
        let text = match rule {
            PieceRule::ByteLevel => {
                self.pending.extend(byte_level_bytes(token));
                self.take_complete(false)
            }
            PieceRule::SentencePiece { replacements, byte_tokens, .. } => match byte_token(token) {
                Some(byte) if *byte_tokens => {
                    self.pending.push(byte);
                    self.take_complete(true)
                }
                _ => {
                    REPLACEMENT.repeat(std::mem::take(&mut self.pending).len())
                        + &replaced(token, replacements)
                }
            },
            PieceRule::Metaspace { replacement, .. } => {
                let space = if std::mem::take(&mut self.drops_first) { "" } else { " " };
                token.replace(*replacement, space)
            }
        };
        self.stripped(text)
    }

    /// Returns U+FFFD for an incomplete character: one for each byte of byte tokens, one in all for byte-level tokens.
    pub fn finish(&mut self, rule: &PieceRule) -> String {
        let pending = std::mem::take(&mut self.pending);
        let text = match rule {
            PieceRule::ByteLevel => REPLACEMENT.repeat(usize::from(!pending.is_empty())),
            _ => REPLACEMENT.repeat(pending.len()),
        };
        self.stripped(text)
    }

    /// Decodes the pending bytes, except a last character that more bytes could complete.
    fn take_complete(&mut self, mark_each_byte: bool) -> String {
        let mut text = String::new();
        let mut start = 0;
        while start < self.pending.len() {
            let rest = &self.pending[start..];
            let Err(error) = std::str::from_utf8(rest) else {
                text.push_str(&String::from_utf8_lossy(rest));
                start = self.pending.len();
                break;
            };
            text.push_str(&String::from_utf8_lossy(&rest[..error.valid_up_to()]));
            start += error.valid_up_to();
            let Some(num_invalid) = error.error_len() else { break };
            text.push_str(&REPLACEMENT.repeat(if mark_each_byte { num_invalid } else { 1 }));
            start += num_invalid;
        }
        self.pending.drain(..start);
        text
    }

    fn stripped(&mut self, text: String) -> String {
        let Some((content, count)) = self.strip else { return text };
        if text.is_empty() {
            return text;
        }
        let num_leading = text.chars().take(count).take_while(|c| *c == content).count();
        let rest = &text[num_leading * content.len_utf8()..];
        // If the whole piece was stripped, the next piece may have more characters to strip.
        self.strip =
            (rest.is_empty() && num_leading < count).then_some((content, count - num_leading));
        rest.to_string()
    }
}
