//! Which JSON Schemas can be held to. A schema that asks for more is refused with the place and the reason: llguidance
//! alone would pass over keywords that its draft doesn't know, and over what a duplicate key or a rounded number breaks.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

const SCHEMAS: [&str; 3] = ["items", "additionalItems", "additionalProperties"];
const LISTS: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const VALUES: [&str; 18] = [
    "type",
    "enum",
    "const",
    "$ref",
    "required",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// They say nothing of what is valid.
const ANNOTATIONS: [&str; 15] = [
    "$schema",
    "$comment",
    "$anchor",
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
    "externalDocs",
];
const FORMATS: [&str; 10] =
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];
/// What llguidance's dates lack: 29 February is in years that 4 divides, of full centuries in those that 400 does.
const CALENDAR: &str = "^([0-9]{4}-(0[13-9]|1|02-([01]|2[0-8]))|\
                        ([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
/// Integers below are exact as the doubles that bounds and constants become.
const END_OF_EXACT: f64 = 9007199254740992.0;

/// The schema without keywords at neutral values and with dates as the calendar has them, or why it can't be held to.
pub fn check(mut schema: Value) -> Result<Value, String> {
    let mut checker = Checker { locations: HashSet::new(), references: Vec::new() };
    checker.visit("#", &mut schema)?;
    for (at, target) in &checker.references {
        if !checker.locations.contains(target.trim_end_matches('/')) {
            return Err(format!(
                "{at}: $ref: expected '#' or a place of a schema here, got '{target}'"
            ));
        }
    }
    Ok(schema)
}

struct Checker {
    locations: HashSet<String>,
    references: Vec<(String, String)>,
}

impl Checker {
    fn visit(&mut self, at: &str, schema: &mut Value) -> Result<(), String> {
        self.locations.insert(at.to_string());
        match schema {
            Value::Bool(_) => Ok(()),
            Value::Object(keywords) => {
                keywords
                    .retain(|name, value| !(name == "uniqueItems" && *value == Value::Bool(false)));
                for (name, value) in keywords.iter_mut() {
                    self.visit_keyword(at, name, value)?;
                }
                check_min_properties(at, keywords)?;
                hold_to_calendar(keywords);
                Ok(())
            }
            other => {
                Err(format!("{at}: expected a schema (an object, true or false), got {other}"))
            }
        }
    }

    fn visit_keyword(&mut self, at: &str, name: &str, value: &mut Value) -> Result<(), String> {
        let here = format!("{at}/{name}");
        match value {
            Value::Array(schemas) if LISTS.contains(&name) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    self.visit(&format!("{here}/{index}"), schema)?;
                }
                Ok(())
            }
            Value::Object(schemas) if MAPS.contains(&name) => {
                for (key, schema) in schemas.iter_mut() {
                    self.visit(&format!("{here}/{key}"), schema)?;
                }
                Ok(())
            }
            value if SCHEMAS.contains(&name) => self.visit(&here, value),
            _ if LISTS.contains(&name) => Err(format!("{here}: expected a list of schemas")),
            _ if MAPS.contains(&name) => Err(format!("{here}: expected an object of schemas")),
            value if VALUES.contains(&name) => self.check_value(at, name, value),
            // An own base for $ref, below the root.
            Value::String(_) if (name == "$id" || name == "id") && at == "#" => Ok(()),
            _ if ANNOTATIONS.contains(&name) => Ok(()),
            _ if name.starts_with("x-") && name != "x-guidance" => Ok(()),
            _ => Err(format!("{at}: the keyword '{name}' is not supported")),
        }
    }

    fn check_value(&mut self, at: &str, name: &str, value: &Value) -> Result<(), String> {
        match (name, value) {
            ("$ref", Value::String(target)) => {
                self.references.push((at.to_string(), target.clone()));
                Ok(())
            }
            ("format", Value::String(format)) if !FORMATS.contains(&format.as_str()) => {
                Err(format!("{at}: format: expected one of {}, got '{format}'", FORMATS.join(", ")))
            }
            ("multipleOf", Value::Number(step)) if step.as_f64().is_none_or(|step| step <= 0.0) => {
                Err(format!("{at}: multipleOf: expected a number above 0, got {step}"))
            }
            _ => check_numbers(&format!("{at}/{name}"), value),
        }
    }
}

/// Beside a pattern of the schema's own; `keywords` have been visited.
fn hold_to_calendar(keywords: &mut Map<String, Value>) {
    if !matches!(keywords.get("format").and_then(Value::as_str), Some("date" | "date-time")) {
        return;
    }
    let schemas = keywords.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(schemas) = schemas {
        schemas.push(json!({"pattern": CALENDAR}));
    }
}

fn check_numbers(at: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|x| x.abs() >= END_OF_EXACT) => {
            Err(format!("{at}: expected a number below 2^53, got {number}"))
        }
        Value::Array(values) => values.iter().try_for_each(|value| check_numbers(at, value)),
        Value::Object(values) => values.values().try_for_each(|value| check_numbers(at, value)),
        _ => Ok(()),
    }
}

/// Names that the schema doesn't list may come twice, and then count once.
fn check_min_properties(at: &str, keywords: &Map<String, Value>) -> Result<(), String> {
    let Some(minimum) = keywords.get("minProperties").and_then(Value::as_u64) else {
        return Ok(());
    };
    let num_required = keywords.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    if minimum <= 1.max(num_required as u64) {
        return Ok(());
    }
    Err(format!(
        "{at}: minProperties: expected at most 1, or as many as are required ({num_required}), got {minimum}"
    ))
}
