//! Methods of Python's str, list and dict that minijinja-contrib's pycompat lacks or implements differently. pycompat
//! has the others.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use crate::python_arguments::Arguments;
use crate::python_lists;
use crate::python_text::is_printable;
use crate::python_tuples::is_tuple;

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let result = match (value.kind(), value.as_str()) {
        (_, Some(text)) => match split_method(text, method, args)? {
            None => string_method(text, method, args)?,
            found => found,
        },
        (ValueKind::Seq | ValueKind::Iterable, _) => match list_method(value, method, args)? {
            None => python_lists::change(value, method, args)?,
            found => found,
        },
        (ValueKind::Map, _) if method == "copy" => Some(value.clone()),
        _ => None,
    };
    match result {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn list_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" if is_tuple(value) => Ok(Some(value.clone())),
        "copy" => Ok(Some(python_lists::list_of(value.try_iter()?.collect()))),
        "index" => {
            let arguments = Arguments::bind(args, &["value"])?;
            let place = value.try_iter()?.position(|item| arguments.raw(0) == Some(&item));
            let missing =
                || Error::new(ErrorKind::InvalidOperation, "index: the value is not in the list");
            place.map(|place| Some(Value::from(place))).ok_or_else(missing)
        }
        _ => Ok(None),
    }
}

/// Returns whether Python's str counts a character as white space: Unicode's white space and four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Calls the methods that split a text.
fn split_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let list = |parts: Vec<&str>| Some(parts.into_iter().map(Value::from).collect::<Value>());
    Ok(match method {
        "split" | "rsplit" => {
            let arguments = Arguments::bind(args, &["sep", "maxsplit"])?;
            let limit = arguments.optional_integer(1)?.unwrap_or(-1);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            match (arguments.optional_text(0)?, method) {
                (Some(""), _) => return Err(invalid("split: expected a separator, got none")),
                (Some(separator), "split") => {
                    list(text.splitn(limit.saturating_add(1), separator).collect())
                }
                (Some(separator), _) => {
                    let mut parts: Vec<&str> =
                        text.rsplitn(limit.saturating_add(1), separator).collect();
                    parts.reverse();
                    list(parts)
                }
                (None, "split") => list(words(text, limit)),
                (None, _) => list(last_words(text, limit)),
            }
        }
        "splitlines" => {
            let keeps_ends = Arguments::bind(args, &["keepends"])?.flag(0);
            list(lines(text, keeps_ends))
        }
        "partition" | "rpartition" => {
            let arguments = Arguments::bind(args, &["sep"])?;
            let separator = arguments.text(0)?;
            let (place, absent) = match method {
                "partition" => (text.split_once(separator), [text, "", ""]),
                _ => (text.rsplit_once(separator), ["", "", text]),
            };
            let parts = place.map_or(absent, |(before, after)| [before, separator, after]);
            Some(Value::from(Tuple::from(parts.map(Value::from))))
        }
        _ => None,
    })
}

fn invalid(detail: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

/// Returns at most `limit` words, then the rest.
fn words(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() && parts.len() < limit {
        let (word, after) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
        parts.push(word);
        rest = after.trim_start_matches(is_space);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn last_words(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() && parts.len() < limit {
        let place = rest.char_indices().rev().find(|(_, c)| is_space(*c));
        let start = place.map_or(0, |(place, c)| place + c.len_utf8());
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts.reverse();
    parts
}

fn lines(text: &str, keeps_ends: bool) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.find(ends).unwrap_or(rest.len());
        let end = if rest[line..].starts_with("\r\n") {
            2
        } else {
            rest[line..].chars().next().map_or(0, char::len_utf8)
        };
        parts.push(&rest[..if keeps_ends { line + end } else { line }]);
        rest = &rest[line + end..];
    }
    parts
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let bind = |names| Arguments::bind(args, names);
    Ok(Some(match method {
        "strip" | "lstrip" | "rstrip" => Value::from(strip(text, method, &bind(&["chars"])?)?),
        "removeprefix" => {
            let arguments = bind(&["prefix"])?;
            Value::from(text.strip_prefix(arguments.text(0)?).unwrap_or(text))
        }
        "removesuffix" => {
            let arguments = bind(&["suffix"])?;
            Value::from(text.strip_suffix(arguments.text(0)?).unwrap_or(text))
        }
        "replace" => {
            let arguments = bind(&["old", "new", "count"])?;
            let count = arguments.optional_integer(2)?;
            Value::from(replace(text, arguments.text(0)?, arguments.text(1)?, count))
        }
        "find" | "rfind" | "index" | "rindex" | "count" => {
            search(text, method, &bind(&["sub", "start", "end"])?)?
        }
        "startswith" | "endswith" if args.len() > 1 => {
            let arguments = bind(&["prefix", "start", "end"])?;
            let part = range(text, &arguments)?.0;
            let is_end = method == "endswith";
            let matches =
                |end: &str| if is_end { part.ends_with(end) } else { part.starts_with(end) };
            Value::from(matches(arguments.text(0)?))
        }
        "ljust" | "rjust" | "center" => {
            let arguments = bind(&["width", "fillchar"])?;
            let side = match method {
                "ljust" => Side::Right,
                "rjust" => Side::Left,
                _ => Side::Both,
            };
            let fill =
                arguments.optional_text(1)?.and_then(|fill| fill.chars().next()).unwrap_or(' ');
            Value::from(pad(text, arguments.width(0, None)?, fill, side))
        }
        "zfill" => {
            let sign = text.len()
                - text.trim_start_matches(['+', '-']).len().max(text.len().saturating_sub(1));
            let width = bind(&["width"])?.width(0, None)?.saturating_sub(sign);
            Value::from(text[..sign].to_string() + &pad(&text[sign..], width, '0', Side::Left))
        }
        "expandtabs" => {
            let arguments = bind(&["tabsize"])?;
            Value::from(expand_tabs(text, arguments.width(0, Some(8))?))
        }
        // Case folding differs from lower case in few letters. Only 'ß' is handled here.
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss")),
        "swapcase" => Value::from(text.chars().map(swapped).collect::<String>()),
        "title" => Value::from(title(text)),
        _ => return Ok(classify(text, method).map(Value::from)),
    }))
}

fn strip<'a>(text: &'a str, method: &str, arguments: &Arguments) -> Result<&'a str, Error> {
    let characters: Option<Vec<char>> =
        arguments.optional_text(0)?.map(|set| set.chars().collect());
    let falls = |c: char| characters.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
    let text = if method == "rstrip" { text } else { text.trim_start_matches(falls) };
    Ok(if method == "lstrip" { text } else { text.trim_end_matches(falls) })
}

pub fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> String {
    match count.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => text.replacen(old, new, count),
        None => text.replace(old, new),
    }
}

/// Returns the part of the text between the arguments `start` and `end`, and the number of characters before it.
fn range<'a>(text: &'a str, arguments: &Arguments) -> Result<(&'a str, usize), Error> {
    let (start, end) = (arguments.optional_integer(1)?, arguments.optional_integer(2)?);
    if start.is_none() && end.is_none() {
        return Ok((text, 0));
    }
    let length = text.chars().count() as i64;
    let place =
        |place: i64| if place < 0 { (place + length).max(0) } else { place.min(length) } as usize;
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(length)));
    let offset =
        |place: usize| text.char_indices().nth(place).map_or(text.len(), |(offset, _)| offset);
    Ok((&text[offset(start)..offset(end.max(start))], start))
}

fn search(text: &str, method: &str, arguments: &Arguments) -> Result<Value, Error> {
    let (part, num_before) = range(text, arguments)?;
    let sought = arguments.text(0)?;
    if method == "count" {
        return Ok(Value::from(part.matches(sought).count()));
    }
    let found = if method.starts_with('r') { part.rfind(sought) } else { part.find(sought) };
    match found {
        Some(offset) => Ok(Value::from(num_before + part[..offset].chars().count())),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(invalid("index: the text has no such part")),
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Left,
    Right,
    Both,
}

/// Pads a text to `width` characters on one side or both.
pub fn pad(text: &str, width: usize, fill: char, side: Side) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let left = match side {
        Side::Left => missing,
        Side::Right => 0,
        // As in CPython: if the width is odd, the left side gets the odd fill character.
        Side::Both => missing / 2 + (missing & width & 1),
    };
    let filled = |count: usize| std::iter::repeat_n(fill, count);
    filled(left).chain(text.chars()).chain(filled(missing - left)).collect()
}

fn expand_tabs(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for character in text.chars() {
        if character == '\t' {
            let count = if size == 0 { 0 } else { size - column % size };
            out.extend(std::iter::repeat_n(' ', count));
            column += count;
            continue;
        }
        column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
        out.push(character);
    }
    out
}

fn swapped(character: char) -> String {
    match character.is_uppercase() {
        true => character.to_lowercase().collect(),
        false => character.to_uppercase().collect(),
    }
}

/// Returns a letter in title case, its form at the start of a word. Digraphs such as 'ǆ' have a form of their own. If
/// the capital has two letters, only the first is upper case: 'Ss' for 'ß'.
fn titled(character: char) -> String {
    let alone = match character {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        'ა'..='ჿ' => character,
        _ => {
            let mut upper = character.to_uppercase();
            let first: String = upper.next().into_iter().collect();
            return first + &upper.flat_map(char::to_lowercase).collect::<String>();
        }
    };
    alone.to_string()
}

/// Capitalises the first letter of each run of letters that have case.
fn title(text: &str) -> String {
    let has_case =
        |c: char| c.is_lowercase() || c.is_uppercase() || matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = &rest[..rest.find(|c| !has_case(c)).unwrap_or(rest.len())];
        if run.is_empty() {
            out.push(first);
        } else {
            // The run is lowercased as a whole, because a sigma at its end has a form of its own.
            let first_length: usize = first.to_lowercase().map(char::len_utf8).sum();
            out.push_str(&titled(first));
            out.push_str(&run.to_lowercase()[first_length..]);
        }
        rest = &rest[run.len().max(first.len_utf8())..];
    }
    out
}

fn classify(text: &str, method: &str) -> Option<bool> {
    let all = |is: fn(char) -> bool| !text.is_empty() && text.chars().all(is);
    Some(match method {
        "isspace" => all(is_space),
        "isdecimal" | "isdigit" => all(|c| c.is_ascii_digit() || c.is_numeric() && is_decimal(c)),
        "isidentifier" => {
            let starts = |c: char| c.is_alphabetic() || c == '_';
            text.starts_with(starts) && all(|c| c.is_alphanumeric() || c == '_')
        }
        "isprintable" => text.chars().all(is_printable),
        "istitle" => text == title(text) && text.chars().any(char::is_alphabetic),
        _ => return None,
    })
}

/// Returns whether a numeric character is a decimal digit. Digits of all scripts are; fractions and numerals are not.
fn is_decimal(character: char) -> bool {
    !matches!(character as u32, 0xB2..=0xBE | 0x2070..=0x218F | 0x2460..=0x24FF | 0x2776..=0x2793 | 0x3007..=0x3029 | 0x3192..=0x32CB)
}
