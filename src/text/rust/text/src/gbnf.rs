//! Translates GBNF, llama.cpp's notation of grammars, to llguidance's Lark. Rules are renamed to r0, r1, ...; root to
//! start.
//!
//!   root ::= item ("," item)*     # alternatives by |, groups, * + ? {m,n}, comments
//!   item ::= "a\n" | [^0-9x]      # texts, sets of characters, . for any

use std::collections::HashMap;
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

enum Token {
    Name(String),
    Defines,
    /// A text, a set or an operator, as Lark writes it.
    Other(String),
}

/// Returns whether a grammar is GBNF: no other notation defines rules by `::=`.
pub fn is_gbnf(text: &str) -> bool {
    text.contains("::=")
}

pub fn to_lark(text: &str) -> Result<String, String> {
    let tokens = tokens_of(text)?;
    let rules = rules_of(&tokens)?;
    let name_of = |name: &str| match rules.get(name) {
        Some(_) if name == "root" => Ok("start".to_string()),
        Some(index) => Ok(format!("r{index}")),
        None => Err(format!("rule '{name}' is not defined")),
    };
    name_of("root")?;
    let mut lark = String::new();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) if is_definition(&tokens, index) => {
                let _ = write!(lark, "\n{}:", name_of(name)?);
            }
            Token::Name(name) => {
                let _ = write!(lark, " {}", name_of(name)?);
            }
            Token::Defines => {}
            Token::Other(text) => {
                // A quantifier has no space before it.
                let space = if text.starts_with(['*', '+', '?', '{']) { "" } else { " " };
                let _ = write!(lark, "{space}{text}");
            }
        }
    }
    Ok(lark)
}

fn is_definition(tokens: &[Token], index: usize) -> bool {
    matches!(tokens.get(index + 1), Some(Token::Defines))
}

fn rules_of(tokens: &[Token]) -> Result<HashMap<&str, usize>, String> {
    let mut rules = HashMap::new();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) if is_definition(tokens, index) => {
                if rules.insert(name.as_str(), rules.len()).is_some() {
                    return Err(format!("rule '{name}' is defined twice"));
                }
            }
            Token::Defines if index == 0 || !matches!(tokens[index - 1], Token::Name(_)) => {
                return Err("'::=': expected a rule's name before it".into());
            }
            Token::Other(text) if rules.is_empty() => {
                return Err(format!("expected a rule, got {text}"));
            }
            _ => {}
        }
    }
    Ok(rules)
}

fn tokens_of(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let token = match c {
            c if c.is_whitespace() => continue,
            '#' => {
                while chars.next_if(|&c| c != '\n').is_some() {}
                continue;
            }
            ':' if chars.next() == Some(':') && chars.next() == Some('=') => Token::Defines,
            '"' => Token::Other(literal(&mut chars)?),
            '[' => Token::Other(set(&mut chars)?),
            '{' => Token::Other(count(&mut chars)?),
            '.' => Token::Other("/(?s:.)/".into()),
            '(' | ')' | '|' | '*' | '+' | '?' => Token::Other(c.into()),
            c if is_in_name(c) => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(|&c| is_in_name(c)) {
                    name.push(c);
                }
                Token::Name(name)
            }
            other => return Err(format!("expected a rule, a text or an operator, got '{other}'")),
        };
        tokens.push(token);
    }
    Ok(tokens)
}

fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Writes a text as a JSON string. U+007F is escaped too, because Lark requires it.
pub fn lark_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\x7f', "\\u007f")
}

fn literal(chars: &mut Peekable<Chars>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match chars.next() {
            Some('"') => return Ok(lark_text(&text)),
            Some('\\') => text.push(escaped(chars)?),
            Some(c) => text.push(c),
            None => return Err("a text has no end".into()),
        }
    }
}

fn set(chars: &mut Peekable<Chars>) -> Result<String, String> {
    let mut regex = String::from("/[");
    if chars.next_if_eq(&'^').is_some() {
        regex.push('^');
    }
    let mut is_empty = true;
    loop {
        let c = match chars.next() {
            Some(']') if is_empty => return Err("a set of characters is empty".into()),
            Some(']') => return Ok(regex + "]/"),
            // Between two characters a minus means a range.
            Some('-') if !is_empty && chars.peek().is_some_and(|&c| c != ']') => {
                regex.push('-');
                continue;
            }
            Some('\\') => escaped(chars)?,
            Some(c) => c,
            None => return Err("a set of characters has no end".into()),
        };
        is_empty = false;
        let _ = write!(regex, "\\x{{{:x}}}", c as u32);
    }
}

fn count(chars: &mut Peekable<Chars>) -> Result<String, String> {
    let mut text = String::from("{");
    for c in chars.by_ref() {
        match c {
            '}' => return Ok(text + "}"),
            '0'..='9' | ',' => text.push(c),
            ' ' => {}
            _ => break,
        }
    }
    Err("expected a count as {2}, {2,} or {2,3}".into())
}

fn escaped(chars: &mut Peekable<Chars>) -> Result<char, String> {
    let c = chars.next().ok_or("an escape has no end")?;
    let num_digits = match c {
        'n' => return Ok('\n'),
        't' => return Ok('\t'),
        'r' => return Ok('\r'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '"' | '\\' | '[' | ']' | '-' | '^' | '/' => return Ok(c),
        _ => return Err(format!("the escape '\\{c}' is not known")),
    };
    let digits: String = chars.by_ref().take(num_digits).collect();
    let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == num_digits);
    code.and_then(char::from_u32).ok_or(format!("'\\{c}{digits}': expected a character's number"))
}
