//! Translates a client's JSON Schema to one that llguidance enforces completely, with fewer keywords. References point
//! into `$defs` by number. Other keywords are expressed by `properties`, `items`, `anyOf`, `allOf` and bounds.
//! Annotations are removed. A schema that cannot be translated is refused with the place and the reason. llguidance
//! alone would ignore unknown keywords, duplicate keys and rounded numbers.
//!
//! Every answer that the new schema allows is valid under the client's. The new schema is stricter in cases that the
//! author hardly intends: other names in objects that list some (names.rs), and a match of `contains` far behind the
//! first items.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::circles::find_circle;
use crate::document::Document;
use crate::keywords::{
    Keywords, LISTS, MAPS, REFERENCES, as_count, check, escaped, is_annotation, shortened,
};
use crate::names::Names;
use crate::negation::opposite;
use crate::output::Output;
use crate::visitor::Visitor;
use crate::{arrays, objects, options, texts};

/// The keyword that stores, in a marked schema, the place in the client's schema.
pub const PLACE: &str = "$comment";

pub fn check_schema(document: &Document, is_marked: bool) -> Result<Value, String> {
    let mut translator =
        Translator { document, is_marked, indices: HashMap::new(), pending: VecDeque::new() };
    let mut schema = translator.visit("#", document.root(), Some(&Names::default()))?;
    let mut definitions = Map::new();
    let mut places = HashMap::new();
    while let Some((place, is_closed)) = translator.pending.pop_front() {
        let target = document.resolve_place(&place)?;
        let names = Names::default();
        let definition = translator.visit(&place, target, is_closed.then_some(&names))?;
        let name = definitions.len().to_string();
        definitions.insert(name.clone(), definition);
        places.insert(name, place);
    }
    if let Some(name) = find_circle(&definitions) {
        let place = &places[name];
        return Err(format!(
            "{place}: expected a schema behind '$ref', got references in a circle"
        ));
    }
    if let Value::Object(keywords) = &mut schema {
        keywords.insert("$defs".into(), definitions.into());
    }
    Ok(schema)
}

struct Translator<'a> {
    document: &'a Document,
    is_marked: bool,
    /// The number of each definition, by its place and whether its objects are closed.
    indices: HashMap<(String, bool), usize>,
    pending: VecDeque<(String, bool)>,
}

/// Keywords whose schemas apply to the same value as the schema that contains them.
const APPLICATORS: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
];

/// How objects are closed to other names. `own`: the schema's names, and a schema for the values of other names.
/// `options`: names that each option of `anyOf` or `oneOf` allows besides its own. Both None: not closed.
struct Closing {
    own: Option<(Names, Value)>,
    options: Option<Names>,
}

impl Visitor for Translator<'_> {
    fn document(&self) -> &Document {
        self.document
    }

    fn visit(
        &mut self,
        at: &str,
        schema: &Value,
        closing: Option<&Names>,
    ) -> Result<Value, String> {
        self.document.step()?;
        let mut visited = match schema {
            Value::Bool(_) => schema.clone(),
            Value::Object(keywords) => self.visit_object(at, keywords, closing)?,
            other => {
                let got = shortened(other);
                return Err(format!(
                    "{at}: expected a schema (an object, true or false), got {got}"
                ));
            }
        };
        self.mark(at, &mut visited);
        Ok(visited)
    }

    fn mark(&self, at: &str, visited: &mut Value) {
        if let Value::Object(keywords) = visited
            && self.is_marked
        {
            keywords.entry(PLACE).or_insert_with(|| at.into());
        }
    }
}

impl Translator<'_> {
    fn visit_object(
        &mut self,
        at: &str,
        keywords: &Keywords,
        closing: Option<&Names>,
    ) -> Result<Value, String> {
        for (name, value) in keywords {
            check(at, name, value)?;
        }
        let is_bare = |names: &Names| !names.are_listed && names.properties.is_empty();
        if closing.is_none_or(is_bare)
            && let Some(visited) = self.visit_stand_in(at, keywords, closing)?
        {
            return Ok(visited);
        }
        let closing = self.closing_of(at, keywords, closing)?;
        let mut output = Output::of(keywords);
        for (name, value) in keywords {
            self.visit_keyword(at, (name, value), keywords, &mut output, &closing)?;
        }
        objects::add_name_rules(self, at, keywords, &mut output)?;
        arrays::add_item_rules(self, at, keywords, &mut output)?;
        if let Some((names, others)) = closing.own {
            output.close(&names, others);
        }
        objects::bound_properties(at, &mut output)?;
        Ok(output.into_schema())
    }

    /// Visits a schema that is only a reference, or only an `allOf` with one schema; returns None for others.
    fn visit_stand_in(
        &mut self,
        at: &str,
        keywords: &Keywords,
        closing: Option<&Names>,
    ) -> Result<Option<Value>, String> {
        let is_silent =
            |name: &str| is_annotation(name) || name == "$defs" || name == "definitions";
        let mut speaking = keywords.iter().filter(|(name, _)| !is_silent(name));
        let (Some((name, value)), None) = (speaking.next(), speaking.next()) else {
            return Ok(None);
        };
        match value {
            Value::Array(schemas) if name == "allOf" && schemas.len() == 1 => {
                self.visit(&format!("{at}/allOf/0"), &schemas[0], closing).map(Some)
            }
            Value::String(target) if REFERENCES.contains(&name.as_str()) => {
                self.reference(at, target, closing.is_some()).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn reference(&mut self, at: &str, target: &str, is_closed: bool) -> Result<Value, String> {
        let (place, _) = self.document.resolve(at, target)?;
        let next = self.indices.len();
        let index = *self.indices.entry((place.clone(), is_closed)).or_insert(next);
        if index == next {
            self.pending.push_back((place, is_closed));
        }
        Ok(json!({"$ref": format!("#/$defs/{index}")}))
    }

    fn closing_of(
        &mut self,
        at: &str,
        keywords: &Keywords,
        outer: Option<&Names>,
    ) -> Result<Closing, String> {
        let open = Closing { own: None, options: None };
        let rest = keywords.get("unevaluatedProperties").filter(|rest| **rest != Value::Bool(true));
        if outer.is_none() && rest.is_none() {
            return Ok(open);
        }
        let mut names = Names::of(self.document, keywords)?;
        if rest.is_some() && names.are_conditional {
            return Err(format!(
                "{at}: unevaluatedProperties: not supported beside properties that only some objects have"
            ));
        }
        if names.says_otherwise || keywords.get("unevaluatedProperties") == Some(&Value::Bool(true))
        {
            return Ok(open);
        }
        names.join(outer.filter(|_| rest.is_none()).unwrap_or(&Names::default()));
        let others = match rest {
            Some(schema) => self.visit_whole(&format!("{at}/unevaluatedProperties"), schema)?,
            None => Value::Bool(false),
        };
        let lists: Vec<&Value> =
            ["anyOf", "oneOf"].iter().filter_map(|name| keywords.get(*name)).collect();
        let mut of_options = Names::default();
        for option in lists.iter().filter_map(|list| list.as_array()).flatten() {
            of_options.join(&Names::of_option(self.document, option)?);
        }
        if !of_options.are_listed || others != Value::Bool(false) {
            names.join(&of_options);
            let is_listing = names.are_listed || rest.is_some();
            return Ok(Closing { own: is_listing.then_some((names, others)), options: None });
        }
        if lists.len() > 1 {
            names.join(&of_options);
            return Ok(Closing { own: Some((names, others)), options: None });
        }
        // Each option is closed, and also allows the names listed beside it.
        names.are_listed |= rest.is_some();
        Ok(Closing { own: None, options: Some(names) })
    }

    fn visit_keyword(
        &mut self,
        at: &str,
        (name, value): (&str, &Value),
        keywords: &Keywords,
        output: &mut Output,
        closing: &Closing,
    ) -> Result<(), String> {
        let here = format!("{at}/{name}");
        match (name, value) {
            ("$defs" | "definitions", _) => {}
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                let visited = schemas.iter().map(|(key, schema)| {
                    let visited = self.visit_whole(&format!("{here}/{}", escaped(key)), schema)?;
                    Ok((key.clone(), visited))
                });
                output
                    .plain
                    .insert(name.into(), visited.collect::<Result<Keywords, String>>()?.into());
            }
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(is_exclusive)) => {
                let bound = if name == "exclusiveMinimum" { "minimum" } else { "maximum" };
                if let Some(bound) = keywords.get(bound).filter(|_| *is_exclusive) {
                    output.plain.insert(name.into(), bound.clone());
                }
            }
            ("format", Value::String(format)) => texts::add_format(format, output),
            ("pattern", Value::String(pattern)) => {
                output.plain.insert(name.into(), texts::plain_pattern(pattern).into());
            }
            _ if APPLICATORS.contains(&name) => {
                let schemas = self.visit_applicator(at, (name, value), keywords, closing)?;
                output.besides.extend(schemas);
            }
            _ if is_annotation(name) || objects::RULES.contains(&name) => {}
            _ if arrays::RULES.contains(&name) => {}
            _ if LISTS.contains(&name) || MAPS.contains(&name) => {}
            (_, value) => {
                let count = if name.starts_with('m') { as_count(value) } else { None };
                let is_number = matches!(name, "minimum" | "maximum" | "multipleOf");
                let value = count.filter(|_| !is_number).map_or_else(|| value.clone(), Value::from);
                output.plain.insert(name.into(), value);
            }
        }
        Ok(())
    }

    /// Returns the schemas that must hold in addition to the schema's plain keywords.
    fn visit_applicator(
        &mut self,
        at: &str,
        (name, value): (&str, &Value),
        keywords: &Keywords,
        closing: &Closing,
    ) -> Result<Vec<Value>, String> {
        let here = format!("{at}/{name}");
        let options_as = |options: Vec<Value>| vec![json!({"anyOf": options})];
        match (name, value) {
            ("allOf", Value::Array(schemas)) => {
                let numbered = schemas.iter().enumerate();
                numbered
                    .map(|(i, schema)| self.visit(&format!("{here}/{i}"), schema, None))
                    .collect()
            }
            ("anyOf", Value::Array(schemas)) => {
                let visited = schemas.iter().enumerate().map(|(index, schema)| {
                    self.visit(&format!("{here}/{index}"), schema, closing.options.as_ref())
                });
                visited.collect::<Result<Vec<_>, _>>().map(options_as)
            }
            ("oneOf", Value::Array(schemas)) => {
                options::visit_one_of(self, &here, schemas, keywords, closing.options.as_ref())
                    .map(options_as)
            }
            ("not", schema) => {
                let opposite = opposite(self.document, &here, schema, 0)?;
                Ok(vec![self.visit(&here, &opposite, None)?])
            }
            ("if", condition) => {
                Ok(options::visit_condition(self, at, condition, keywords)?.into_iter().collect())
            }
            (_, Value::String(target)) => Ok(vec![self.reference(at, target, false)?]),
            // `then` and `else` are translated with `if`.
            _ => Ok(Vec::new()),
        }
    }
}
