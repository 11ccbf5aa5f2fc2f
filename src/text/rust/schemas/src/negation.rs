//! The opposite of a schema, as a schema without `not`. It is used for `not`, for `if`, and for branches of `oneOf`
//! that overlap.
//!
//! A value fails a schema if it fails one keyword, so an opposite is an `anyOf` with an option for each keyword. Two
//! opposites are narrower than necessary: that of "integer" allows no number at all, and that of a constant list or
//! object allows no list or no object. A keyword that has no opposite here (`pattern`, for example) is refused with its
//! place.

use serde_json::{Value, json};

use crate::document::{Document, reference_of};
use crate::keywords::{Keywords, as_count, check, escaped, is_annotation, strings_of, type_of};

const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
/// The deepest nesting of references.
const MAX_DEPTH: usize = 24;
/// The most bytes of all texts of one `enum`. The opposite of the texts is a regular expression several times as long.
const MAX_BYTES: usize = 2000;

/// Returns the schema of all values that `schema`, at the place `at`, does not allow.
pub fn opposite(
    document: &Document,
    at: &str,
    schema: &Value,
    depth: usize,
) -> Result<Value, String> {
    document.step()?;
    let keywords = match schema {
        Value::Bool(allows) => return Ok(json!(!allows)),
        Value::Object(keywords) if depth < MAX_DEPTH => keywords,
        _ => return Err(format!("{at}: no opposite of it is known")),
    };
    let mut options = Vec::new();
    for (name, value) in keywords {
        check(at, name, value)?;
        let below = |path: String, schema: &Value| {
            opposite(document, &format!("{at}/{path}"), schema, depth + 1)
        };
        match (name.as_str(), value) {
            ("const", value) => options.extend(other_values(at, &[value])?),
            ("enum", Value::Array(values)) => {
                options.extend(other_values(at, &values.iter().collect::<Vec<_>>())?);
            }
            ("type", _) => options.extend(other_types(keywords)),
            ("properties", Value::Object(properties)) => {
                for (key, schema) in properties {
                    let other = below(format!("{name}/{}", escaped(key)), schema)?;
                    options.push(
                        json!({"type": "object", "required": [key], "properties": {key: other}}),
                    );
                }
            }
            ("required", _) => {
                let absent = |key: &str| json!({"type": "object", "properties": {key: false}});
                options.extend(strings_of(Some(value)).map(absent));
            }
            ("allOf", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    options.push(below(format!("{name}/{index}"), schema)?);
                }
            }
            ("anyOf", Value::Array(schemas)) => {
                let others = schemas.iter().enumerate();
                let others = others.map(|(index, schema)| below(format!("{name}/{index}"), schema));
                options.push(json!({"allOf": others.collect::<Result<Vec<_>, _>>()?}));
            }
            ("not", schema) => options.push(schema.clone()),
            ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                let target = reference_of(keywords).unwrap_or_default();
                let (place, schema) = document.resolve(at, target)?;
                options.push(opposite(document, &place, schema, depth + 1)?);
            }
            _ if is_annotation(name) || matches!(name.as_str(), "$defs" | "definitions") => {}
            _ => options.extend(beyond_bound(at, name, value, keywords)?),
        }
    }
    Ok(json!({"anyOf": options}))
}

fn other_types(keywords: &Keywords) -> Option<Value> {
    let named = crate::keywords::types_of(keywords)?;
    let is_other = |name: &&str| match *name {
        "number" => !named.contains(&"number") && !named.contains(&"integer"),
        name => !named.contains(&name),
    };
    of_types(TYPES.into_iter().filter(is_other).collect())
}

fn of_types(types: Vec<&str>) -> Option<Value> {
    (!types.is_empty()).then(|| json!({"type": types}))
}

/// Returns schemas that together allow all values except these; each type is handled separately.
fn other_values(at: &str, values: &[&Value]) -> Result<Vec<Value>, String> {
    let used: Vec<&str> = values.iter().map(|value| type_of(value)).collect();
    let mut options = Vec::new();
    options.extend(of_types(TYPES.into_iter().filter(|name| !used.contains(name)).collect()));
    let texts: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_BYTES {
        return Err(format!("{at}: no opposite of texts of more than {MAX_BYTES} bytes is known"));
    }
    if !texts.is_empty() {
        let pattern = format!("^{}$", other_texts(&texts));
        options.push(json!({"type": "string", "pattern": pattern}));
    }
    if used.contains(&"boolean") {
        let is_left = |flag: &bool| !values.contains(&&json!(flag));
        options
            .extend([true, false].into_iter().filter(is_left).map(|flag| json!({"const": flag})));
    }
    let mut numbers: Vec<(f64, &Value)> =
        values.iter().filter_map(|value| Some((value.as_f64()?, *value))).collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((_, first)), Some((_, last))) = (numbers.first(), numbers.last()) {
        options.push(json!({"type": "number", "exclusiveMaximum": first}));
        options.push(json!({"type": "number", "exclusiveMinimum": last}));
    }
    for pair in numbers.windows(2).filter(|pair| pair[0].0 < pair[1].0) {
        let (low, high) = (pair[0].1, pair[1].1);
        options.push(json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}));
    }
    Ok(options)
}

/// Returns a regular expression for every text except these. It has an option for each place where a text may leave the
/// trie of these texts.
fn other_texts(texts: &[&str]) -> String {
    let mut next: Vec<char> = texts.iter().filter_map(|text| text.chars().next()).collect();
    next.sort_unstable();
    next.dedup();
    let end = if texts.contains(&"") { "" } else { "|" };
    if next.is_empty() {
        return r"[\s\S]+".into();
    }
    let others: String = next.iter().map(|&c| in_regex(c)).collect();
    let mut options = vec![format!(r"[^{others}][\s\S]*")];
    for c in next {
        let rests: Vec<&str> = texts.iter().filter_map(|text| text.strip_prefix(c)).collect();
        options.push(format!("{}{}", in_regex(c), other_texts(&rests)));
    }
    format!("({}{end})", options.join("|"))
}

fn in_regex(c: char) -> String {
    format!(r"\x{{{:x}}}", c as u32)
}

fn beyond_bound(
    at: &str,
    name: &str,
    value: &Value,
    keywords: &Keywords,
) -> Result<Option<Value>, String> {
    let count = as_count(value);
    let exceeds = |of: &str, keyword: &str| count.map(|n| json!({"type": of, keyword: n + 1}));
    // No count is less than 0, so a minimum of 0 has an empty opposite.
    let falls_short = |of: &str, keyword: &str| {
        count.filter(|&n| n > 0).map(|n| json!({"type": of, keyword: n - 1}))
    };
    let is_true = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
    Ok(match name {
        "minLength" => falls_short("string", "maxLength"),
        "maxLength" => exceeds("string", "minLength"),
        "minItems" => falls_short("array", "maxItems"),
        "maxItems" => exceeds("array", "minItems"),
        "minProperties" => falls_short("object", "maxProperties"),
        "maxProperties" => exceeds("object", "minProperties"),
        "minimum" if is_true("exclusiveMinimum") => {
            Some(json!({"type": "number", "maximum": value}))
        }
        "maximum" if is_true("exclusiveMaximum") => {
            Some(json!({"type": "number", "minimum": value}))
        }
        "minimum" => Some(json!({"type": "number", "exclusiveMaximum": value})),
        "maximum" => Some(json!({"type": "number", "exclusiveMinimum": value})),
        "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => None,
        "exclusiveMinimum" => Some(json!({"type": "number", "maximum": value})),
        "exclusiveMaximum" => Some(json!({"type": "number", "minimum": value})),
        "then" | "else" if !keywords.contains_key("if") => None,
        _ => return Err(format!("{at}: no opposite of '{name}' is known")),
    })
}
