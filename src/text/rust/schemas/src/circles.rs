//! Finds references that lead in a circle: behind them there is no schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Returns the name of a definition that is nothing but references in a circle.
pub fn find_circle(definitions: &Map<String, Value>) -> Option<&String> {
    let mut referrers: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut has_end: HashMap<&str, bool> = HashMap::new();
    let mut pending: Vec<&str> = Vec::new();
    for (name, schema) in definitions {
        let mut targets = Vec::new();
        let is_reference = add_targets(schema, &mut targets);
        has_end.insert(name, !is_reference);
        if !is_reference {
            pending.push(name);
        }
        for target in targets {
            referrers.entry(target).or_default().push(name);
        }
    }
    while let Some(name) = pending.pop() {
        for referrer in referrers.remove(name).unwrap_or_default() {
            if has_end.insert(referrer, true) == Some(false) {
                pending.push(referrer);
            }
        }
    }
    definitions.keys().find(|name| !has_end[name.as_str()])
}

/// Adds the names of the definitions that a schema refers to. Returns false if it has more than references.
fn add_targets<'a>(schema: &'a Value, targets: &mut Vec<&'a str>) -> bool {
    let Value::Object(keywords) = schema else { return false };
    let mut keywords = keywords.iter();
    let (Some((keyword, value)), None) = (keywords.next(), keywords.next()) else { return false };
    match (keyword.as_str(), value) {
        ("$ref", Value::String(target)) => {
            let name = target.rsplit('/').next();
            targets.extend(name);
            name.is_some()
        }
        ("anyOf", Value::Array(options)) => {
            options.iter().all(|option| add_targets(option, targets))
        }
        ("allOf", Value::Array(parts)) if parts.len() == 1 => add_targets(&parts[0], targets),
        _ => false,
    }
}
