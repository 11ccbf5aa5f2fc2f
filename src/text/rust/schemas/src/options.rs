//! Translates `oneOf`, and `if` with `then` and `else`, to options that exclude one another.

use serde_json::{Value, json};

use crate::keywords::{Keywords, types_of};
use crate::names::Names;
use crate::negation::opposite;
use crate::overlap::{all_parts, are_disjoint};
use crate::visitor::Visitor;

/// Returns the options of `oneOf`, of which at most one allows a value. `closing`: as in Visitor::visit.
pub fn visit_one_of(
    visitor: &mut dyn Visitor,
    at: &str,
    schemas: &[Value],
    keywords: &Keywords,
    closing: Option<&Names>,
) -> Result<Vec<Value>, String> {
    let mut options = Vec::new();
    for (index, schema) in schemas.iter().enumerate() {
        let here = format!("{at}/{index}");
        let mut names = None;
        if let Some(outer) = closing {
            let mut own = Names::of_option(visitor.document(), schema)?;
            own.join(outer);
            names = Some(own).filter(|names| names.are_listed && !names.says_otherwise);
        }
        let mut all = vec![visitor.visit(&here, schema, closing)?];
        for (other_index, other) in schemas.iter().enumerate().filter(|(i, _)| *i != index) {
            let types = || types_of(keywords);
            let is_excluded = match &names {
                Some(names) => names.exclude(&all_parts(visitor.document(), other)?, types()),
                None => false,
            };
            if is_excluded || are_disjoint(visitor.document(), schema, other, types())? {
                continue;
            }
            let other_at = format!("{at}/{other_index}");
            let opposite = opposite(visitor.document(), &other_at, other, 0).map_err(|reason| {
                format!("{at}: oneOf: {index} and {other_index} may both be valid ({reason})")
            })?;
            all.push(visitor.visit(&other_at, &opposite, None)?);
        }
        let joined = all.len() > 1;
        let mut option = if joined { json!({"allOf": all}) } else { all.remove(0) };
        visitor.mark(&here, &mut option);
        options.push(option);
    }
    Ok(options)
}

/// Translates `if` with `then` and `else` to two options; None if both are absent.
pub fn visit_condition(
    visitor: &mut dyn Visitor,
    at: &str,
    condition: &Value,
    keywords: &Keywords,
) -> Result<Option<Value>, String> {
    let (then, other) = (keywords.get("then"), keywords.get("else"));
    if then.is_none() && other.is_none() {
        return Ok(None);
    }
    let here = format!("{at}/if");
    let mut holds = vec![visitor.visit(&here, condition, None)?];
    let opposite = opposite(visitor.document(), &here, condition, 0)?;
    let mut fails = vec![visitor.visit(&here, &opposite, None)?];
    for (name, schema, all) in [("then", then, &mut holds), ("else", other, &mut fails)] {
        if let Some(schema) = schema {
            all.push(visitor.visit(&format!("{at}/{name}"), schema, None)?);
        }
    }
    Ok(Some(json!({"anyOf": [{"allOf": holds}, {"allOf": fails}]})))
}
