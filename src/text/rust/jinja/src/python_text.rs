//! `str` and `repr` of values as in Python. `{{ value }}`, `~` and the filter `string` print them.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use crate::python_json;
use crate::python_tuples::is_tuple;

/// The deepest nesting that is printed, because each level takes some stack. Templates can nest lists a few hundred
/// thousand levels deep.
const MAX_DEPTH: usize = 250_000;

pub fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_text(&mut out, value)?;
    Ok(out)
}

pub fn write_text(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => write_repr(out, value, 0)?,
    }
    Ok(())
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value is nested too deep"));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => return write_list(out, value, depth),
        ValueKind::Map => return write_map(out, value, depth),
        _ => write_scalar(out, value),
    }
    Ok(())
}

#[inline(never)]
fn write_scalar(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&float(f64::try_from(value.clone()).unwrap_or(f64::NAN)));
        }
        _ => out.push_str(&value.to_string()),
    }
}

fn write_list(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    let is_tuple = is_tuple(value);
    let mut num_items = 0;
    out.push(if is_tuple { '(' } else { '[' });
    for item in value.try_iter()? {
        out.push_str(if num_items == 0 { "" } else { ", " });
        write_repr(out, &item, depth + 1)?;
        num_items += 1;
    }
    out.push_str(match (is_tuple, num_items) {
        (true, 1) => ",)",
        (true, _) => ")",
        (false, _) => "]",
    });
    Ok(())
}

fn write_map(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    let mut separator = "";
    out.push('{');
    for key in value.try_iter()? {
        out.push_str(separator);
        write_repr(out, &key, depth + 1)?;
        out.push_str(": ");
        write_repr(out, &value.get_item(&key)?, depth + 1)?;
        separator = ", ";
    }
    out.push('}');
    Ok(())
}

fn float(number: f64) -> String {
    match number {
        _ if number.is_nan() => "nan".to_string(),
        f64::INFINITY => "inf".to_string(),
        f64::NEG_INFINITY => "-inf".to_string(),
        _ => python_json::float(number),
    }
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character == '\\' || character == quote => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            _ if is_printable(character) => out.push(character),
            _ => write_code(out, character as u32),
        }
    }
    out.push(quote);
}

fn write_code(out: &mut String, code: u32) {
    out.push_str(&match code {
        0..=0xFF => format!("\\x{code:02x}"),
        0x100..=0xFFFF => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    });
}

/// Returns whether Python's repr prints a character as it is. Rust's escape_debug has the same rule, but escapes a
/// combining accent at the start of a text. So a letter is put before the character.
pub fn is_printable(character: char) -> bool {
    let text = ['a', character].iter().collect::<String>();
    matches!(character, '\'' | '"' | '\\') || text.escape_debug().count() == 2
}
