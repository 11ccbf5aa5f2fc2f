//! The names that a schema lists for its objects. A schema that lists any allows no others unless it says so, as in
//! xgrammar and llama.cpp. `unevaluatedProperties` refers to the same names.

use serde_json::{Map, Value, json};

use crate::document::{Document, reference_of};
use crate::keywords::{Keywords, strings_of, types_of};

/// The deepest nesting of references and `allOf`.
const MAX_DEPTH: usize = 24;

/// Names in the order in which a schema, and the schemas that it includes, list them.
#[derive(Clone, Default)]
pub struct Names {
    pub properties: Map<String, Value>,
    pub patterns: Map<String, Value>,
    /// `properties` or `patternProperties` is present, even if it is empty.
    pub are_listed: bool,
    /// `additionalProperties` or `unevaluatedProperties` is present.
    pub says_otherwise: bool,
    /// Some names come from other schemas, such as those in `allOf`.
    pub are_joined: bool,
    /// Some names belong only to objects that fit some condition.
    pub are_conditional: bool,
}

impl Names {
    /// Returns the names in `keywords`, without the options of its `anyOf` and `oneOf`, which are handled separately.
    pub fn of(document: &Document, keywords: &Keywords) -> Result<Names, String> {
        let mut names = Names::default();
        names.add_own(keywords);
        // The caller handles the schema's own `unevaluatedProperties`, with these names.
        names.says_otherwise = keywords.contains_key("additionalProperties");
        names.add_joined(document, keywords, 0)?;
        Ok(names)
    }

    /// Returns the names of `schema` and all its options.
    pub fn of_option(document: &Document, schema: &Value) -> Result<Names, String> {
        let mut names = Names::default();
        names.add(document, schema, 0)?;
        Ok(names)
    }

    pub fn join(&mut self, other: &Names) {
        self.are_joined |= other.are_listed;
        self.are_listed |= other.are_listed;
        let patterns = other.patterns.iter().map(|(key, value)| (key.clone(), value.clone()));
        self.patterns.extend(patterns);
        for key in other.properties.keys() {
            self.list(key);
        }
    }

    /// Returns a schema of objects with these names. Values of all other names must fit `others`.
    pub fn closing(&self, others: Value) -> Value {
        json!({"properties": self.properties, "patternProperties": self.patterns,
               "additionalProperties": others})
    }

    /// Returns whether an object that has only these names never fits `parts`, because they require another name.
    pub fn exclude(&self, parts: &[&Keywords], types: Option<Vec<&str>>) -> bool {
        let of_objects = |types: Option<Vec<&str>>| types.is_some_and(|types| types == ["object"]);
        let are_objects = of_objects(types) || parts.iter().any(|part| of_objects(types_of(part)));
        let is_missing = |key: &str| !self.properties.contains_key(key);
        let lacks = |part: &&Keywords| strings_of(part.get("required")).any(is_missing);
        are_objects && self.patterns.is_empty() && parts.iter().any(lacks)
    }

    fn list(&mut self, key: &str) {
        self.properties.entry(key).or_insert(Value::Bool(true));
    }

    fn add_own(&mut self, keywords: &Keywords) {
        let map_of = |name: &str| keywords.get(name).and_then(Value::as_object);
        for (name, properties) in [("properties", true), ("patternProperties", false)] {
            let Some(listed) = map_of(name) else { continue };
            self.are_listed = true;
            let names = if properties { &mut self.properties } else { &mut self.patterns };
            for key in listed.keys() {
                names.entry(key.as_str()).or_insert(Value::Bool(true));
            }
        }
        self.says_otherwise |= keywords.contains_key("additionalProperties")
            || keywords.contains_key("unevaluatedProperties");
        for key in strings_of(keywords.get("required")) {
            self.list(key);
        }
        for name in ["dependentRequired", "dependencies", "dependentSchemas"] {
            for (key, value) in map_of(name).into_iter().flatten() {
                self.list(key);
                strings_of(Some(value)).for_each(|key| self.list(key));
            }
        }
    }

    fn add_joined(
        &mut self,
        document: &Document,
        keywords: &Keywords,
        depth: usize,
    ) -> Result<(), String> {
        document.step()?;
        for schema in keywords.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.are_joined = true;
            self.add(document, schema, depth + 1)?;
        }
        if let Some(target) = reference_of(keywords).filter(|_| depth < MAX_DEPTH) {
            self.are_joined = true;
            self.add(document, document.resolve("#", target)?.1, depth + 1)?;
        }
        let dependent = ["dependentSchemas", "dependencies"];
        let dependent = dependent.iter().filter_map(|name| keywords.get(*name)?.as_object());
        let branches = ["if", "then", "else"].iter().filter_map(|name| keywords.get(*name));
        for schema in dependent.flat_map(|map| map.values()).chain(branches) {
            self.add_some(document, schema, depth + 1)?;
        }
        Ok(())
    }

    fn add(&mut self, document: &Document, schema: &Value, depth: usize) -> Result<(), String> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        if depth > MAX_DEPTH {
            return Ok(());
        }
        self.add_own(keywords);
        self.add_joined(document, keywords, depth)?;
        for name in ["anyOf", "oneOf"] {
            for option in keywords.get(name).and_then(Value::as_array).into_iter().flatten() {
                self.add_some(document, option, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Adds the names of a schema that an object need not fit. Its `additionalProperties` does not count.
    fn add_some(
        &mut self,
        document: &Document,
        schema: &Value,
        depth: usize,
    ) -> Result<(), String> {
        let mut some = Names::default();
        some.add(document, schema, depth)?;
        self.are_conditional |= some.are_listed;
        self.join(&some);
        Ok(())
    }
}
