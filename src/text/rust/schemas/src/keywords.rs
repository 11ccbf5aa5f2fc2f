//! The keywords of JSON Schema, draft 4 to 2020-12: which hold schemas, which hold plain values, and which values are
//! valid.

use serde_json::{Map, Value};

pub const SCHEMAS: [&str; 11] = [
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
];
pub const LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
pub const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that do not restrict values.
const ANNOTATIONS: [&str; 21] = [
    "$schema",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "discriminator",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "contentSchema",
    "externalDocs",
    "nullable",
    "xml",
];
const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];
/// Integers below it are exact as doubles; bounds and constants are converted to doubles.
const END_OF_EXACT: f64 = 9007199254740992.0;

pub type Keywords = Map<String, Value>;

/// Returns whether a keyword does not restrict values. `$id` only names a schema; document.rs handles it.
pub fn is_annotation(name: &str) -> bool {
    let is_name = name == "$id" || name == "id";
    let is_extension = name.starts_with("x-") && name != "x-guidance";
    is_name || is_extension || ANNOTATIONS.contains(&name)
}

/// Escapes a key for use in a place, which is a JSON pointer.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns the schemas directly inside a schema, each with its path from there: "properties/a".
pub fn schemas_below(keywords: &Keywords) -> Vec<(String, &Value)> {
    let mut below = Vec::new();
    for (name, value) in keywords {
        match value {
            Value::Array(schemas) if LISTS.contains(&name.as_str()) => {
                let numbered = schemas.iter().enumerate();
                below.extend(numbered.map(|(i, schema)| (format!("{name}/{i}"), schema)));
            }
            Value::Object(schemas) if MAPS.contains(&name.as_str()) => {
                let are_schemas = schemas.iter().filter(|(_, schema)| !schema.is_array());
                let path = |key: &String| format!("{name}/{}", escaped(key));
                below.extend(are_schemas.map(|(key, schema)| (path(key), schema)));
            }
            schema if SCHEMAS.contains(&name.as_str()) => below.push((name.clone(), schema)),
            _ => {}
        }
    }
    below
}

/// Checks that `name` is a known keyword and `value` a valid value for it. Schemas in the value are not checked.
pub fn check(at: &str, name: &str, value: &Value) -> Result<(), String> {
    let expected = match name {
        _ if is_annotation(name) => return Ok(()),
        _ if REFERENCES.contains(&name) => (value.is_string(), "a string"),
        "pattern" | "format" => (value.is_string(), "a string"),
        "uniqueItems" => (value.is_boolean(), "true or false"),
        "type" => (is_type(value), "a type's name, or a list of them"),
        "enum" => (value.as_array().is_some_and(|list| !list.is_empty()), "a list of values"),
        "const" => (true, ""),
        "required" => (is_list_of_strings(value), "a list of strings"),
        "dependentRequired" => (
            value.as_object().is_some_and(|map| map.values().all(is_list_of_strings)),
            "an object of lists of strings",
        ),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => (as_count(value).is_some(), "a count (0, 1, ...)"),
        "minimum" | "maximum" => (value.is_number(), "a number"),
        "exclusiveMinimum" | "exclusiveMaximum" => {
            (value.is_number() || value.is_boolean(), "a number, or true or false")
        }
        "multipleOf" => (value.as_f64().is_some_and(|step| step > 0.0), "a number above 0"),
        "items" if value.is_array() => (true, ""),
        _ if SCHEMAS.contains(&name) => (true, ""),
        _ if LISTS.contains(&name) => (value.is_array(), "a list of schemas"),
        _ if MAPS.contains(&name) => (value.is_object(), "an object of schemas"),
        _ => return Err(format!("{at}: the keyword '{name}' is not supported")),
    };
    if !expected.0 {
        return Err(format!("{at}/{name}: expected {}, got {}", expected.1, shortened(value)));
    }
    let holds_schemas = SCHEMAS.contains(&name) || LISTS.contains(&name) || MAPS.contains(&name);
    if holds_schemas {
        return Ok(());
    }
    match value {
        Value::String(pattern) if name == "pattern" => {
            check_pattern(&format!("{at}/{name}"), pattern)
        }
        _ => check_value(&format!("{at}/{name}"), value),
    }
}

/// Returns 3 for 3, and for 3.0 as well.
pub fn as_count(value: &Value) -> Option<u64> {
    let is_whole = |x: &f64| *x >= 0.0 && x.fract() == 0.0 && *x < END_OF_EXACT;
    value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|x| x as u64))
}

/// Returns the names in `type`, which is a string or a list; None if any type is allowed.
pub fn types_of(keywords: &Keywords) -> Option<Vec<&str>> {
    match keywords.get("type")? {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

pub fn strings_of(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the type of a value, named as in the keyword `type`.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the values of `const` or `enum`.
pub fn values_of(keywords: &Keywords) -> Option<Vec<&Value>> {
    match keywords.get("const") {
        Some(value) => Some(vec![value]),
        None => Some(keywords.get("enum")?.as_array()?.iter().collect()),
    }
}

pub fn shortened(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn is_type(value: &Value) -> bool {
    let is_name = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    is_name(value)
        || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_name))
}

fn is_list_of_strings(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

fn check_value(at: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|x| x.abs() >= END_OF_EXACT) => {
            Err(format!("{at}: expected a number below 2^53, got {number}"))
        }
        Value::String(text) => text.chars().try_for_each(|c| check_character(at, c)),
        Value::Array(values) => values.iter().try_for_each(|value| check_value(at, value)),
        Value::Object(values) => values.values().try_for_each(|value| check_value(at, value)),
        _ => Ok(()),
    }
}

/// Refuses a character that llguidance can write only as \u, because llguidance would drop it from the answer.
fn check_character(at: &str, c: char) -> Result<(), String> {
    let has_short_escape = "\u{8}\t\n\u{c}\r".contains(c);
    if has_short_escape || !c.is_ascii_control() {
        return Ok(());
    }
    Err(format!("{at}: the control character U+{:04X} is not supported", c as u32))
}

/// Checks the literal characters of a pattern. Characters in brackets are skipped: each is one of several alternatives,
/// so it may be dropped.
fn check_pattern(at: &str, pattern: &str) -> Result<(), String> {
    let mut rest = pattern.chars();
    let mut depth = 0;
    while let Some(c) = rest.next() {
        let meant = match c {
            '[' => {
                depth += 1;
                continue;
            }
            ']' => {
                depth = 0.max(depth - 1);
                continue;
            }
            '\\' => match rest.next() {
                Some('a') => '\u{7}',
                Some('v') => '\u{b}',
                Some('x') => hexadecimal(rest.as_str(), 2),
                Some('u') => hexadecimal(rest.as_str(), 4),
                _ => continue,
            },
            c => c,
        };
        if depth == 0 {
            check_character(at, meant)?;
        }
    }
    Ok(())
}

/// Returns the character of "7f" or "{7f}"; a space if there is none.
fn hexadecimal(text: &str, num_digits: usize) -> char {
    let digits = match text.strip_prefix('{') {
        Some(braced) => braced.split('}').next(),
        None => text.get(..num_digits),
    };
    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    code.and_then(char::from_u32).unwrap_or(' ')
}
