//! A schema that is being built: plain keywords, and schemas that must also hold.

use serde_json::{Value, json};

use crate::keywords::Keywords;
use crate::names::Names;

#[derive(Default)]
pub struct Output {
    /// Keywords that llguidance must see in one schema, such as `properties` and `additionalProperties`.
    pub plain: Keywords,
    /// Schemas that must also hold: an `anyOf`, a reference, ...
    pub besides: Vec<Value>,
    /// The names of `plain` follow those of `besides`.
    is_plain_last: bool,
}

impl Output {
    /// Makes an empty output for the translation of `keywords`.
    pub fn of(keywords: &Keywords) -> Output {
        Output { is_plain_last: is_plain_last(keywords), ..Output::default() }
    }

    pub fn into_schema(mut self) -> Value {
        if self.besides.is_empty() {
            return self.plain.into();
        }
        if self.plain.is_empty() && self.besides.len() == 1 {
            return self.besides.remove(0);
        }
        let besides = std::iter::once(("allOf".to_string(), Value::from(self.besides)));
        if self.is_plain_last {
            return besides.chain(self.plain).collect::<Keywords>().into();
        }
        self.plain.into_iter().chain(besides).collect::<Keywords>().into()
    }

    /// Closes objects to these names. Values of all other names must fit `others`.
    pub fn close(&mut self, names: &Names, others: Value) {
        if names.are_joined || self.plain.contains_key("additionalProperties") {
            self.besides.push(names.closing(others));
            return;
        }
        let properties = self.plain.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            for name in names.properties.keys() {
                properties.entry(name.as_str()).or_insert(Value::Bool(true));
            }
        }
        self.plain.insert("additionalProperties".into(), others);
    }
}

/// Returns whether `properties` follows keywords such as `allOf` or `$ref`. The order of names in a schema is their
/// order in an answer.
fn is_plain_last(keywords: &Keywords) -> bool {
    let place_of = |names: &[&str]| keywords.keys().position(|key| names.contains(&key.as_str()));
    let besides = place_of(&["allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef"]);
    match (place_of(&["properties"]), besides) {
        (Some(own), Some(besides)) => besides < own,
        _ => false,
    }
}
