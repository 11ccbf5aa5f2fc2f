//! Rewrites the text of a template, so that minijinja reads it like Jinja2:
//! - the blocks {% generation %} of transformers, which mark a model's own text for training, become `with` blocks.
//!   They print their content, and variables set in them are local;
//! - the newline after {% raw %} is text, unlike the newline after other tags;
//! - the iterable of a loop is checked first by the filter LOOPED (filters.rs).
//! Line numbers stay the same.

use crate::filters::LOOPED;

/// Iterates over the names, keywords and other single characters of a tag's text, with their positions. Text in
/// brackets and strings is skipped.
struct Words<'a> {
    text: &'a str,
    place: usize,
    depth: i32,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Words<'a> {
        Words { text, place: 0, depth: 0 }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        loop {
            let start = self.place;
            let rest = &self.text[start..];
            let first = rest.chars().next()?;
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                '"' | '\'' => string_length(rest),
                _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            self.place += length;
            let depth = self.depth;
            match first {
                '(' | '[' | '{' => self.depth += 1,
                ')' | ']' | '}' => self.depth -= 1,
                '"' | '\'' => continue,
                _ => {}
            }
            if depth == 0 {
                return Some((start, &self.text[start..self.place]));
            }
        }
    }
}

fn string_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let quote = characters.next().map(|(_, c)| c);
    while let Some((place, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if Some(character) == quote {
            return place + 1;
        }
    }
    text.len()
}

/// Returns the number of bytes of the tag at the start of the text, with both marks; None if the tag has no end.
fn tag_length(text: &str, close: &str) -> Option<usize> {
    let inside = &text[2..];
    let mut words = Words::of(inside);
    let mark = close.chars().next()?;
    while let Some((place, _)) = words.next() {
        if inside[place..].starts_with(mark) && inside[place..].starts_with(close) {
            return Some(2 + place + close.len());
        }
    }
    None
}

/// Returns a tag's text without the signs - and + at its ends.
fn without_signs(inside: &str) -> &str {
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    inside.strip_suffix(['-', '+']).unwrap_or(inside)
}

/// Rewrites `for x in messages if x` to `for x in (messages)|LOOPED if x`; returns None for other tags.
fn with_looped(inside: &str) -> Option<String> {
    let all = without_signs(inside);
    let mut words = Words::of(all).filter(|(_, word)| !word.trim().is_empty());
    if words.next()?.1 != "for" {
        return None;
    }
    let (place, word) = words.find(|(_, word)| *word == "in")?;
    let begin = place + word.len();
    let end = words.find(|(_, word)| ["if", "recursive"].contains(word));
    let end = end.map_or(all.len(), |(place, _)| place);
    let offset = all.as_ptr() as usize - inside.as_ptr() as usize;
    let (before, rest) = inside.split_at(offset + begin);
    let (looped, after) = rest.split_at(end - begin);
    let is_there = !looped.trim().is_empty();
    is_there.then(|| format!("{before} ({looped})|{LOOPED} {after}"))
}

/// Returns the number of bytes before the tag that ends a raw block; None if there is no such tag.
fn raw_length(text: &str) -> Option<usize> {
    text.match_indices("{%").map(|(place, _)| place).find(|place| {
        let inside = text[place + 2..].split("%}").next().unwrap_or_default();
        without_signs(inside).trim() == "endraw"
    })
}

/// Writes the raw block at the start of the text, up to the mark that opens its end tag; returns the bytes read.
fn write_raw(out: &mut String, text: &str, length: usize) -> usize {
    let inside = &text[2..length - 2];
    out.push_str("{%");
    out.push_str(inside);
    // A plus keeps the newline after the tag.
    out.push_str(if inside.ends_with(['-', '+']) { "%}" } else { "+%}" });
    let Some(raw) = raw_length(&text[length..]) else {
        out.push_str(&text[length..]);
        return text.len();
    };
    let end = length + raw;
    out.push_str(&text[length..end]);
    // If the whole block is on one line, the white space before its end tag is text, not indentation. A plus keeps it.
    let is_bare = !text[end + 2..].starts_with(['-', '+']);
    let stands_alone = text[length..end].contains('\n');
    out.push_str(if is_bare && !stands_alone { "{%+" } else { "{%" });
    end + 2
}

/// Writes the tag at the start of the text, or its raw block; returns the bytes read.
fn write_tag(out: &mut String, text: &str) -> usize {
    if text.starts_with("{#") {
        let length = text.find("#}").map_or(text.len(), |place| place + 2);
        out.push_str(&text[..length]);
        return length;
    }
    let close = if text.starts_with("{{") { "}}" } else { "%}" };
    let Some(length) = tag_length(text, close) else {
        out.push_str(text);
        return text.len();
    };
    let tag = &text[..length];
    if close == "}}" {
        out.push_str(tag);
        return length;
    }
    let inside = &tag[2..length - 2];
    match without_signs(inside).trim() {
        "raw" => return write_raw(out, text, length),
        "generation" => out.push_str(&tag.replace("generation", " with ")),
        "endgeneration" => out.push_str(&tag.replace("endgeneration", " endwith ")),
        _ => match with_looped(inside) {
            Some(inside) => out.extend(["{%", &inside, "%}"]),
            None => out.push_str(tag),
        },
    }
    length
}

pub fn rewritten(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(place) = rest
        .match_indices('{')
        .map(|(place, _)| place)
        .find(|place| rest[place + 1..].starts_with(['{', '%', '#']))
    {
        out.push_str(&rest[..place]);
        rest = &rest[place..];
        let length = write_tag(&mut out, rest);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}
