//! Rules of arrays: items at given positions and after them, required items, and items that differ.

use serde_json::{Value, json};

use crate::document::Document;
use crate::keywords::{Keywords, as_count, types_of, values_of};
use crate::negation::opposite;
use crate::output::Output;
use crate::overlap::{all_parts, are_disjoint};
use crate::visitor::Visitor;

pub const RULES: [&str; 8] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
];
/// The most items that `contains` may require. The grammar allows fewer than this many other items before the last of
/// them.
const MAX_PLACES: usize = 8;
/// The most ways to place the items that `contains` requires.
const MAX_WAYS: usize = 64;
/// The most lists of different values. Each list is an option of the grammar. Five values have 326 lists.
const MAX_LISTS: usize = 330;

pub fn add_item_rules(
    visitor: &mut dyn Visitor,
    at: &str,
    keywords: &Keywords,
    output: &mut Output,
) -> Result<(), String> {
    let (items, prefix) = (keywords.get("items"), keywords.get("prefixItems"));
    let (firsts, rest, first_name, rest_name) = match items {
        // Until draft 2019-09 `items` could be a list.
        Some(Value::Array(firsts)) => {
            (Some(firsts), keywords.get("additionalItems"), "items", "additionalItems")
        }
        _ => (prefix.and_then(Value::as_array), items, "prefixItems", "items"),
    };
    if prefix.is_some() && first_name == "items" {
        return Err(format!("{at}/items: expected a schema beside prefixItems, got a list"));
    }
    if let Some(schemas) = firsts {
        let visited = schemas.iter().enumerate().map(|(index, schema)| {
            visitor.visit_whole(&format!("{at}/{first_name}/{index}"), schema)
        });
        let visited = visited.collect::<Result<Vec<_>, _>>()?;
        output.plain.insert("prefixItems".into(), visited.into());
    }
    let (rest, rest_name) = match (rest, keywords.get("unevaluatedItems")) {
        (None, Some(rest)) => (Some(unevaluated(at, keywords, rest)?), "unevaluatedItems"),
        (rest, _) => (rest, rest_name),
    };
    if let Some(rest) = rest {
        let visited = visitor.visit_whole(&format!("{at}/{rest_name}"), rest)?;
        output.plain.insert("items".into(), visited);
    }
    if let Some(schema) = keywords.get("contains") {
        let ways = ways_to_contain(visitor, at, schema, keywords)?;
        output.besides.extend(ways);
    }
    if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
        output.besides.extend(lists_of_different(visitor.document(), at, keywords)?);
    }
    Ok(())
}

fn unevaluated<'a>(at: &str, keywords: &Keywords, rest: &'a Value) -> Result<&'a Value, String> {
    let beside = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "contains",
        "dependentSchemas",
    ];
    match beside.iter().find(|name| keywords.contains_key(**name)) {
        Some(name) if *rest != Value::Bool(true) => {
            Err(format!("{at}: unevaluatedItems: not supported beside '{name}'"))
        }
        _ => Ok(rest),
    }
}

/// Returns an `anyOf` with an option for each way to place the items that `contains` requires.
fn ways_to_contain(
    visitor: &mut dyn Visitor,
    at: &str,
    schema: &Value,
    keywords: &Keywords,
) -> Result<Option<Value>, String> {
    let here = format!("{at}/contains");
    let count = |name: &str| keywords.get(name).and_then(as_count).map(|count| count as usize);
    let (least, most) = (count("minContains").unwrap_or(1), count("maxContains"));
    let item = visitor.visit(&here, schema, None)?;
    if most.is_none() && least == 0 {
        return Ok(None);
    }
    let mut other = Value::Bool(true);
    if most.is_some() {
        let opposite = opposite(visitor.document(), &here, schema, 0)?;
        other = visitor.visit(&here, &opposite, None)?;
    }
    if least > MAX_PLACES {
        return Err(format!("{at}/minContains: expected at most {MAX_PLACES}, got {least}"));
    }
    let max_items = count("maxItems").unwrap_or(usize::MAX);
    let mut ways = Vec::new();
    for count in least..=most.unwrap_or(least).min(least + MAX_PLACES) {
        let mut num_places = count;
        while num_places <= max_items && num_places < count + MAX_PLACES {
            add_ways(count, num_places, &mut Vec::new(), &mut ways);
            num_places += 1;
            if count == 0 || ways.len() > MAX_WAYS {
                break;
            }
        }
    }
    ways.truncate(MAX_WAYS);
    let as_schema = |way: &Vec<bool>| {
        let firsts: Vec<&Value> =
            way.iter().map(|is_item| if *is_item { &item } else { &other }).collect();
        json!({"prefixItems": firsts, "items": other, "minItems": way.len()})
    };
    if ways.is_empty() {
        return Err(format!("{at}: contains: expected at most as many as maxItems allows"));
    }
    let options: Vec<Value> = ways.iter().map(as_schema).collect();
    Ok(Some(json!({"anyOf": options})))
}

/// Adds all lists of `num_places` flags to `ways` in which `count` flags are true, the last one among them.
fn add_ways(count: usize, num_places: usize, begun: &mut Vec<bool>, ways: &mut Vec<Vec<bool>>) {
    if ways.len() > MAX_WAYS {
        return;
    }
    if num_places == 0 {
        ways.push(begun.clone());
        return;
    }
    for is_item in [true, false] {
        let num_left = count - usize::from(is_item && count > 0);
        let fits = if is_item { count > 1 || num_places == 1 } else { num_places > count };
        if (count > 0 || !is_item) && fits {
            begun.push(is_item);
            add_ways(num_left, num_places - 1, begun, ways);
            begun.pop();
        }
    }
}

/// Returns a schema that makes the items of an array differ. None is needed if the array has at most one item, or only
/// items at given positions whose schemas exclude each other. If the items have few values, the schema lists all valid
/// arrays.
fn lists_of_different(
    document: &Document,
    at: &str,
    keywords: &Keywords,
) -> Result<Option<Value>, String> {
    let count = |name: &str| keywords.get(name).and_then(as_count).map(|count| count as usize);
    let most = count("maxItems").unwrap_or(usize::MAX);
    if most <= 1
        || (keywords.get("items") == Some(&Value::Bool(false)) && all_differ(document, keywords)?)
    {
        return Ok(None);
    }
    let refusal = format!(
        "{at}: uniqueItems: supported where maxItems is 1, where items have few values (enum), and where each has a place and values of its own"
    );
    let values = match keywords.get("items") {
        Some(items) if !keywords.contains_key("prefixItems") => few_values(document, items)?,
        _ => None,
    };
    let values = values.ok_or_else(|| refusal.clone())?;
    let mut lists: Vec<Vec<&Value>> = vec![Vec::new()];
    let mut first_longest = 0;
    for _ in 0..most.min(values.len()) {
        let longest = first_longest..lists.len();
        first_longest = lists.len();
        for index in longest {
            for value in
                values.iter().filter(|value| !lists[index].contains(value)).collect::<Vec<_>>()
            {
                let longer = [&lists[index][..], &[value]].concat();
                lists.push(longer);
            }
        }
        if lists.len() > MAX_LISTS {
            return Err(refusal);
        }
    }
    lists.retain(|list| list.len() >= count("minItems").unwrap_or(0));
    let others = json!({"type": ["null", "boolean", "number", "string", "object"]});
    Ok(Some(json!({"anyOf": [{"enum": lists}, others]})))
}

fn few_values(document: &Document, items: &Value) -> Result<Option<Vec<Value>>, String> {
    let parts = all_parts(document, items)?;
    if let Some(values) = parts.iter().find_map(|part| values_of(part)) {
        let mut different: Vec<Value> = Vec::new();
        for value in values {
            let is_same = |other: &Value| match (other.as_f64(), value.as_f64()) {
                (Some(a), Some(b)) => a == b,
                _ => other == value,
            };
            if !different.iter().any(is_same) {
                different.push(value.clone());
            }
        }
        return Ok(Some(different));
    }
    let types = parts.iter().find_map(|part| types_of(part)).unwrap_or(vec!["string"]);
    if types.iter().any(|name| *name != "boolean" && *name != "null") {
        return Ok(None);
    }
    let mut values = Vec::new();
    for name in types {
        values.extend(if name == "null" {
            vec![Value::Null]
        } else {
            vec![true.into(), false.into()]
        });
    }
    Ok(Some(values))
}

fn all_differ(document: &Document, keywords: &Keywords) -> Result<bool, String> {
    let firsts: Vec<&Value> =
        keywords.get("prefixItems").and_then(Value::as_array).into_iter().flatten().collect();
    for (index, first) in firsts.iter().enumerate() {
        for other in &firsts[..index] {
            if !are_disjoint(document, first, other, None)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
