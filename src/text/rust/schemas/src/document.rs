//! A client's whole JSON Schema, and the schemas that its references name: '#', a place ("#/$defs/a"), an anchor
//! ("#a"), or an $id.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;

use crate::keywords::{Keywords, LISTS, MAPS, REFERENCES, SCHEMAS, schemas_below};

/// The most calls of `step` by all functions that interpret a schema. A short schema may expand to more than memory
/// holds.
const MAX_STEPS: usize = 300_000;

pub struct Document {
    root: Value,
    /// The place of each schema that has a name; None if two schemas have the same name.
    named: HashMap<String, Option<String>>,
    num_steps: Cell<usize>,
}

impl Document {
    pub fn new(root: Value) -> Result<Document, String> {
        let mut named = HashMap::new();
        name_schemas("#", &root, &mut named)?;
        Ok(Document { root, named, num_steps: Cell::new(0) })
    }

    pub fn root(&self) -> &Value {
        &self.root
    }

    pub fn step(&self) -> Result<(), String> {
        self.num_steps.set(self.num_steps.get() + 1);
        if self.num_steps.get() <= MAX_STEPS {
            return Ok(());
        }
        Err(format!("#: the schema is too large: holding to it takes more than {MAX_STEPS} steps"))
    }

    /// Returns the schema that a reference names, and its canonical place.
    pub fn resolve(&self, at: &str, target: &str) -> Result<(String, &Value), String> {
        let found = self.place_of(target).and_then(|place| Some((self.at_place(&place)?, place)));
        let (schema, place) = found.ok_or_else(|| {
            format!("{at}: $ref: expected '#' or a place of a schema here, got '{target}'")
        })?;
        Ok((place, schema))
    }

    /// Returns the schema at a place that `resolve` has returned.
    pub fn resolve_place(&self, place: &str) -> Result<&Value, String> {
        self.at_place(place).ok_or_else(|| format!("{place}: expected a schema"))
    }

    fn place_of(&self, target: &str) -> Option<String> {
        if let Some(place) = self.named.get(target) {
            return place.clone();
        }
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let place = if base.is_empty() { "#" } else { self.named.get(base)?.as_deref()? };
        if fragment.is_empty() || fragment == "/" {
            return Some(place.to_string());
        }
        if !fragment.starts_with('/') {
            return self.named.get(&format!("#{fragment}"))?.clone();
        }
        (place == "#").then(|| format!("#{}", percent_decoded(fragment)))
    }

    /// Returns the schema at a place. Every step of the place must be a keyword that holds schemas.
    fn at_place(&self, place: &str) -> Option<&Value> {
        let mut schema = &self.root;
        let mut segments =
            place.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~"));
        while let Some(name) = segments.next() {
            let value = schema.get(&name)?;
            let name = name.as_str();
            schema = match value {
                Value::Object(schemas) if MAPS.contains(&name) => schemas.get(&segments.next()?)?,
                Value::Array(schemas) if LISTS.contains(&name) => {
                    schemas.get(segments.next()?.parse::<usize>().ok()?)?
                }
                value if SCHEMAS.contains(&name) => value,
                _ => return None,
            };
        }
        (schema.is_object() || schema.is_boolean()).then_some(schema)
    }
}

/// Returns the target of a schema's reference, whichever keyword it uses.
pub fn reference_of(keywords: &Keywords) -> Option<&str> {
    REFERENCES.iter().find_map(|name| keywords.get(*name)).and_then(Value::as_str)
}

fn name_schemas(
    at: &str,
    schema: &Value,
    named: &mut HashMap<String, Option<String>>,
) -> Result<(), String> {
    let Value::Object(keywords) = schema else { return Ok(()) };
    let mut name = |text: String| {
        named.entry(text).and_modify(|place| *place = None).or_insert(Some(at.to_string()));
    };
    for keyword in ["$anchor", "$dynamicAnchor"] {
        if let Some(Value::String(anchor)) = keywords.get(keyword) {
            name(format!("#{anchor}"));
        }
    }
    if let Some(Value::String(id)) = keywords.get("$id").or(keywords.get("id")) {
        let is_base = at != "#" && !id.starts_with('#');
        if is_base && has_reference(schema) {
            return Err(format!("{at}: $id: a base of its own for '$ref' is not supported"));
        }
        name(id.trim_end_matches('#').to_string());
    }
    for (path, below) in schemas_below(keywords) {
        name_schemas(&format!("{at}/{path}"), below, named)?;
    }
    Ok(())
}

fn has_reference(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return false };
    reference_of(keywords).is_some()
        || schemas_below(keywords).iter().any(|(_, below)| has_reference(below))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match decoded {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
