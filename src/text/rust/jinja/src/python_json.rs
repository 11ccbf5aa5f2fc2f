//! `json.dumps` like Python's. Chat templates print tools and arguments with it, and models are trained on its spacing.

use std::collections::BTreeMap;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::python_arguments::Arguments;

/// A deeper value is an error, so that it cannot overflow the stack. Values of a request are less deep: the JSON reader
/// stops at 128.
const MAX_DEPTH: usize = 256;

struct Format {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    ascii: bool,
}

/// Applies the filter `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`. It escapes nothing
/// for HTML.
pub fn tojson(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let names = &["ensure_ascii", "indent", "separators", "sort_keys"];
    let arguments = Arguments::of(args, kwargs, names)?;
    let indent = arguments.get(1).map(|indent| match indent.as_str() {
        Some(text) => text.to_string(),
        None => " ".repeat(indent.as_usize().unwrap_or(0).min(64)),
    });
    let (mut item_separator, mut key_separator) =
        (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string());
    if let Some(separators) = arguments.get(2) {
        let separators: Vec<String> = separators.try_iter()?.map(|text| text.to_string()).collect();
        let [item, key] = <[String; 2]>::try_from(separators).map_err(|_| {
            Error::new(ErrorKind::InvalidOperation, "tojson: separators: expected two")
        })?;
        (item_separator, key_separator) = (item, key);
    }
    let format = Format {
        indent,
        item_separator,
        key_separator,
        sort_keys: arguments.flag(3),
        ascii: arguments.flag(0),
    };
    let mut out = String::new();
    write_value(&mut out, value, &format, 0)?;
    Ok(Value::from(out))
}

fn write_value(
    out: &mut String,
    value: &Value,
    format: &Format,
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson: the value is nested too deep",
        ));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default(), format.ascii),
        ValueKind::Seq | ValueKind::Iterable => write_list(out, value, format, depth)?,
        ValueKind::Map => write_map(out, value, format, depth)?,
        kind => {
            let detail = format!("tojson: a value of type {kind} has no JSON form");
            return Err(Error::new(ErrorKind::InvalidOperation, detail));
        }
    }
    Ok(())
}

fn write_list(out: &mut String, value: &Value, format: &Format, depth: usize) -> Result<(), Error> {
    let mut is_first = true;
    out.push('[');
    for item in value.try_iter()? {
        separate(out, format, &mut is_first, depth + 1);
        write_value(out, &item, format, depth + 1)?;
    }
    close(out, format, is_first, depth, ']');
    Ok(())
}

fn write_map(out: &mut String, value: &Value, format: &Format, depth: usize) -> Result<(), Error> {
    let mut keys: Vec<Value> = value.try_iter()?.collect();
    if format.sort_keys {
        keys = keys
            .into_iter()
            .map(|key| (key.to_string(), key))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect();
    }
    let mut is_first = true;
    out.push('{');
    for key in keys {
        separate(out, format, &mut is_first, depth + 1);
        // A key that is not a string is written as its JSON text in quotes, as in Python.
        let mut text = String::new();
        match key.as_str() {
            Some(key) => text.push_str(key),
            None => write_value(&mut text, &key, format, depth + 1)?,
        }
        write_string(out, &text, format.ascii);
        out.push_str(&format.key_separator);
        write_value(out, &value.get_item(&key)?, format, depth + 1)?;
    }
    close(out, format, is_first, depth, '}');
    Ok(())
}

fn separate(out: &mut String, format: &Format, is_first: &mut bool, depth: usize) {
    if !std::mem::replace(is_first, false) {
        out.push_str(&format.item_separator);
    }
    new_line(out, format, depth);
}

fn close(out: &mut String, format: &Format, is_empty: bool, depth: usize, bracket: char) {
    if !is_empty {
        new_line(out, format, depth);
    }
    out.push(bracket);
}

fn new_line(out: &mut String, format: &Format, depth: usize) {
    if let Some(indent) = &format.indent {
        out.push('\n');
        out.push_str(&indent.repeat(depth));
    }
}

fn write_string(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", character as u32)),
            _ if ascii && !(' '..='~').contains(&character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes a number like Python's repr: the shortest digits that read back exactly, with an exponent below 1e-4 and from
/// 1e16.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
