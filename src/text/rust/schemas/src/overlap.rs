//! Decides whether two schemas can both allow a value. Branches of `oneOf` that never do are equivalent to `anyOf`.

use serde_json::Value;

use crate::document::{Document, reference_of};
use crate::keywords::{Keywords, strings_of, type_of, types_of, values_of};

const MAX_DEPTH: usize = 8;
/// The most parts of one schema, including those from `allOf` and references.
const MAX_PARTS: usize = 1000;
const ALL_TYPES: u8 = 0b11_1111;
const OBJECT: u8 = 0b10_0000;

/// Returns true if no value of `types` (names as in `type`; None: all) fits both schemas. False if it is not known.
pub fn are_disjoint(
    document: &Document,
    a: &Value,
    b: &Value,
    types: Option<Vec<&str>>,
) -> Result<bool, String> {
    let types = types.map_or(ALL_TYPES, |names| bits_of(&names));
    disjoint(document, a, b, types, 0)
}

/// Returns all keyword objects that apply to a value of `schema`: its own, and those from `allOf` and references.
pub fn all_parts<'a>(
    document: &'a Document,
    schema: &'a Value,
) -> Result<Vec<&'a Keywords>, String> {
    let mut parts: Vec<&Keywords> = Vec::new();
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        document.step()?;
        let Value::Object(keywords) = schema else { continue };
        if parts.iter().any(|part| std::ptr::eq(*part, keywords)) {
            continue;
        }
        if parts.len() == MAX_PARTS {
            return Err(format!("#: allOf: more than {MAX_PARTS} schemas for one value"));
        }
        parts.push(keywords);
        pending.extend(keywords.get("allOf").and_then(Value::as_array).into_iter().flatten());
        if let Some(target) = reference_of(keywords) {
            pending.push(document.resolve("#", target)?.1);
        }
    }
    Ok(parts)
}

fn disjoint(
    document: &Document,
    a: &Value,
    b: &Value,
    types: u8,
    depth: usize,
) -> Result<bool, String> {
    document.step()?;
    if depth > MAX_DEPTH {
        return Ok(false);
    }
    if a == &Value::Bool(false) || b == &Value::Bool(false) {
        return Ok(true);
    }
    let (a_parts, b_parts) = (all_parts(document, a)?, all_parts(document, b)?);
    let types = a_parts.iter().chain(&b_parts).fold(types, |types, part| types & type_bits(part));
    if types == 0 || have_no_value(&a_parts, &b_parts) || have_no_value(&b_parts, &a_parts) {
        return Ok(true);
    }
    if have_no_number(types, &a_parts, &b_parts) || have_no_number(types, &b_parts, &a_parts) {
        return Ok(true);
    }
    for (parts, other) in [(&a_parts, b), (&b_parts, a)] {
        for part in parts {
            for list in ["anyOf", "oneOf"].iter().filter_map(|name| part.get(*name)?.as_array()) {
                let all =
                    list.iter().map(|option| disjoint(document, option, other, types, depth + 1));
                if all.collect::<Result<Vec<_>, _>>()?.into_iter().all(|is_disjoint| is_disjoint) {
                    return Ok(true);
                }
            }
        }
    }
    if types != OBJECT {
        return Ok(false);
    }
    for key in a_parts.iter().chain(&b_parts).flat_map(|part| strings_of(part.get("required"))) {
        for (x, y) in
            schemas_of(key, &a_parts).flat_map(|x| schemas_of(key, &b_parts).map(move |y| (x, y)))
        {
            if disjoint(document, x, y, ALL_TYPES, depth + 1)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn schemas_of<'a>(key: &'a str, parts: &'a [&'a Keywords]) -> impl Iterator<Item = &'a Value> {
    parts.iter().filter_map(move |part| {
        let properties = part.get("properties").and_then(Value::as_object);
        let is_listed = properties.is_some_and(|properties| properties.contains_key(key));
        let is_closed = !part.contains_key("patternProperties")
            && part.get("additionalProperties") == Some(&Value::Bool(false));
        match properties.and_then(|properties| properties.get(key)) {
            Some(schema) => Some(schema),
            None if is_closed && !is_listed => part.get("additionalProperties"),
            None => None,
        }
    })
}

/// Returns whether one of `parts` lists values that `others` all refuse, by type or by their own lists.
fn have_no_value(parts: &[&Keywords], others: &[&Keywords]) -> bool {
    let is_excluded = |value: &&Value| {
        others.iter().any(|other| {
            let is_unlisted = |values: Vec<&Value>| !values.iter().any(|v| is_equal(v, value));
            values_of(other).is_some_and(is_unlisted)
                || type_bits(other) & bits_of(&[type_of(value)]) == 0
        })
    };
    parts.iter().filter_map(|part| values_of(part)).any(|values| values.iter().all(is_excluded))
}

/// Returns whether two values may be equal. 1 and 1.0 are equal; any two lists may be, and any two objects.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => type_of(a) == type_of(b) && (a == b || a.is_array() || a.is_object()),
    }
}

/// Returns whether every number that `parts` allow is below every number that `others` allow.
fn have_no_number(types: u8, parts: &[&Keywords], others: &[&Keywords]) -> bool {
    let bound = |parts: &[&Keywords], name: &str| -> Vec<f64> {
        parts.iter().filter_map(|part| part.get(name)?.as_f64()).collect()
    };
    let (highest, below) = (bound(parts, "maximum"), bound(parts, "exclusiveMaximum"));
    let (lowest, above) = (bound(others, "minimum"), bound(others, "exclusiveMinimum"));
    types == bits_of(&["number"])
        && (highest.iter().any(|x| lowest.iter().any(|y| x < y) || above.iter().any(|y| x <= y))
            || below.iter().any(|x| lowest.iter().chain(&above).any(|y| x <= y)))
}

fn type_bits(keywords: &Keywords) -> u8 {
    types_of(keywords).map_or(ALL_TYPES, |names| bits_of(&names))
}

fn bits_of(names: &[&str]) -> u8 {
    names.iter().fold(0, |bits, name| {
        bits | match *name {
            "null" => 1,
            "boolean" => 2,
            "number" | "integer" => 4,
            "string" => 8,
            "array" => 16,
            _ => OBJECT,
        }
    })
}
