//! Rules of objects that are expressed by other keywords: property names, properties that require others, and the
//! number of properties.

use serde_json::{Value, json};

use crate::document::{Document, reference_of};
use crate::keywords::{Keywords, as_count, escaped, is_annotation, strings_of, types_of};
use crate::output::Output;
use crate::texts;
use crate::visitor::Visitor;

pub const RULES: [&str; 6] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];
/// The most choices of properties. Each choice is an option of the grammar.
const MAX_CHOICES: usize = 64;
/// The deepest nesting of references.
const MAX_DEPTH: usize = 24;

/// The names that `propertyNames` allows.
enum NameSet {
    Any,
    Listed(Vec<String>),
    Matching(String),
}

pub fn add_name_rules(
    visitor: &mut dyn Visitor,
    at: &str,
    keywords: &Keywords,
    output: &mut Output,
) -> Result<(), String> {
    let names = match keywords.get("propertyNames") {
        Some(schema) => name_set(visitor.document(), &format!("{at}/propertyNames"), schema, 0)?,
        None => NameSet::Any,
    };
    if let Some(schema) = keywords.get("additionalProperties") {
        let visited = visitor.visit_whole(&format!("{at}/additionalProperties"), schema)?;
        output.plain.insert("additionalProperties".into(), visited);
    }
    hold_names(at, names, output)?;
    for name in ["dependentRequired", "dependentSchemas", "dependencies"] {
        let Some(Value::Object(rules)) = keywords.get(name) else { continue };
        for (key, asked) in rules {
            let here = format!("{at}/{name}/{}", escaped(key));
            let asked = match asked {
                Value::Array(_) => json!({"required": asked}),
                schema => visitor.visit(&here, schema, None)?,
            };
            let absent = json!({"properties": {key: false}});
            output.besides.push(json!({"anyOf": [absent, asked]}));
        }
    }
    Ok(())
}

fn hold_names(at: &str, names: NameSet, output: &mut Output) -> Result<(), String> {
    let plain = &mut output.plain;
    let has_patterns = plain.contains_key("patternProperties");
    let is_allowed: Box<dyn Fn(&str) -> bool> = match &names {
        NameSet::Any => return Ok(()),
        _ if has_patterns => {
            return Err(format!("{at}: propertyNames: not supported beside patternProperties"));
        }
        NameSet::Listed(listed) => Box::new(|name| listed.iter().any(|other| other == name)),
        NameSet::Matching(_) if plain.contains_key("properties") => {
            return Err(format!(
                "{at}: propertyNames: expected a list of names where properties are listed as well"
            ));
        }
        NameSet::Matching(_) => Box::new(|_| true),
    };
    let others = plain.insert("additionalProperties".into(), false.into()).unwrap_or(true.into());
    let mut properties = match plain.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Keywords::new(),
    };
    for (name, schema) in &mut properties {
        if !is_allowed(name) {
            *schema = false.into();
        }
    }
    drop(is_allowed);
    match names {
        NameSet::Matching(pattern) => {
            plain.insert("patternProperties".into(), json!({pattern: others}));
        }
        NameSet::Listed(listed) => {
            for name in listed {
                properties.entry(name).or_insert_with(|| others.clone());
            }
        }
        NameSet::Any => {}
    }
    plain.insert("properties".into(), properties.into());
    Ok(())
}

fn name_set(
    document: &Document,
    at: &str,
    schema: &Value,
    depth: usize,
) -> Result<NameSet, String> {
    document.step()?;
    let keywords = match schema {
        Value::Bool(true) => return Ok(NameSet::Any),
        Value::Object(keywords) if depth < MAX_DEPTH => keywords,
        Value::Object(_) => return Err(format!("{at}: too many references within one another")),
        _ => return Ok(NameSet::Listed(Vec::new())),
    };
    let silent = ["type", "$defs", "definitions"];
    let is_unknown = |value: &Value| {
        let is_ours = |format: &str| texts::is_known(format) || texts::pattern_of(format).is_some();
        !value.as_str().is_some_and(is_ours)
    };
    let speaking: Vec<(&str, &Value)> = keywords
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !is_annotation(name) && !silent.contains(name))
        .filter(|(name, value)| *name != "format" || !is_unknown(value))
        .collect();
    if types_of(keywords).is_some_and(|types| !types.contains(&"string")) {
        return Ok(NameSet::Listed(Vec::new()));
    }
    let bound = |name: &str| keywords.get(name).and_then(as_count).map(|n| n.to_string());
    match speaking[..] {
        [] => Ok(NameSet::Any),
        [("const", value)] => {
            Ok(NameSet::Listed(value.as_str().map(Into::into).into_iter().collect()))
        }
        [("enum", values)] => {
            Ok(NameSet::Listed(strings_of(Some(values)).map(Into::into).collect()))
        }
        [("pattern", Value::String(pattern))] => Ok(NameSet::Matching(pattern.clone())),
        [("format", Value::String(format))] if texts::pattern_of(format).is_some() => {
            Ok(NameSet::Matching(texts::pattern_of(format).unwrap_or_default()))
        }
        [(_, _)] if reference_of(keywords).is_some() => {
            let target = reference_of(keywords).unwrap_or_default();
            let (place, schema) = document.resolve(at, target)?;
            name_set(document, &place, schema, depth + 1)
        }
        _ if speaking.iter().all(|(name, _)| matches!(*name, "minLength" | "maxLength")) => {
            let least = bound("minLength").unwrap_or("0".into());
            let most = bound("maxLength").unwrap_or_default();
            Ok(NameSet::Matching(format!(r"^[\s\S]{{{least},{most}}}$")))
        }
        _ => Err(format!(
            "{at}: expected one of enum, const, pattern, format 'uuid' and bounds of the length, got {}",
            speaking.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
        )),
    }
}

/// Translates bounds on the number of properties that llguidance cannot enforce. Unlisted names are not counted,
/// because a name may be repeated in an answer but counts once.
pub fn bound_properties(at: &str, output: &mut Output) -> Result<(), String> {
    let plain = &mut output.plain;
    let required: Vec<String> = strings_of(plain.get("required")).map(Into::into).collect();
    let (num_required, bound) =
        (required.len(), |name: &str| plain.get(name).and_then(Value::as_u64));
    let (least, most) = (bound("minProperties"), bound("maxProperties"));
    let optional = optional_names(plain, &required);
    let Some(optional) = optional.filter(|names| !names.is_empty()) else {
        let least = least.unwrap_or(0);
        if least <= 1.max(num_required as u64) {
            return Ok(());
        }
        return Err(format!(
            "{at}: minProperties: expected at most 1, or as many as are required ({num_required}), got {least}"
        ));
    };
    let beyond =
        |bound: u64| usize::try_from(bound).unwrap_or(usize::MAX).saturating_sub(num_required);
    let (least, most) =
        (least.map_or(0, beyond), most.map(beyond).filter(|_| most >= Some(num_required as u64)));
    let too_many = |name: &str| {
        format!("{at}: {name}: more than {MAX_CHOICES} choices of properties are not supported")
    };
    if least > optional.len() {
        return Err(format!("{at}: minProperties: expected at most as many as are listed"));
    }
    if least > 1 {
        let choices = choices_of(&optional, least).ok_or_else(|| too_many("minProperties"))?;
        let options: Vec<Value> = choices.iter().map(|names| json!({"required": names})).collect();
        output.besides.push(json!({"anyOf": options}));
        plain.shift_remove("minProperties");
    }
    if let Some(most) = most
        && most < optional.len()
        && (most != 1 || least > 1)
    {
        let choices = choices_of(&optional, optional.len() - most);
        let without = |names: &Vec<&str>| {
            let none: Keywords =
                names.iter().map(|name| (name.to_string(), false.into())).collect();
            json!({"properties": none})
        };
        let options: Vec<Value> =
            choices.ok_or_else(|| too_many("maxProperties"))?.iter().map(without).collect();
        output.besides.push(json!({"anyOf": options}));
    }
    if most.is_some_and(|most| most >= optional.len() || most != 1 || least > 1) {
        plain.shift_remove("maxProperties");
    }
    Ok(())
}

/// Returns the optional names, if an object may have no other names than those listed; otherwise None.
fn optional_names(plain: &Keywords, required: &[String]) -> Option<Vec<String>> {
    let has_patterns = plain
        .get("patternProperties")
        .and_then(Value::as_object)
        .is_some_and(|patterns| !patterns.is_empty());
    if has_patterns || plain.get("additionalProperties") != Some(&Value::Bool(false)) {
        return None;
    }
    let properties = plain.get("properties")?.as_object()?;
    let is_optional = |(name, schema): &(&String, &Value)| {
        **schema != Value::Bool(false) && !required.contains(*name)
    };
    Some(properties.iter().filter(is_optional).map(|(name, _)| name.clone()).collect())
}

/// Returns all choices of `count` names; None if there are too many.
fn choices_of(names: &[String], count: usize) -> Option<Vec<Vec<&str>>> {
    let mut choices: Vec<Vec<&str>> = vec![Vec::new()];
    for (index, name) in names.iter().enumerate() {
        let num_left = names.len() - index;
        let mut longer = Vec::new();
        for choice in choices {
            let num_missing = count - choice.len();
            if num_missing > 0 {
                longer.push([&choice[..], &[name]].concat());
            }
            if num_missing < num_left {
                longer.push(choice);
            }
        }
        if longer.len() > MAX_CHOICES {
            return None;
        }
        choices = longer;
    }
    Some(choices)
}
