//! `oneOf`, and `if` with `then` and `else`: options of which no two allow the same value, or as good as that.

use serde_json::{Value, json};

use crate::check::{Closing, PLACE, Translator};
use crate::keywords::{Keywords, types_of};
use crate::names::Names;
use crate::negation::opposite;
use crate::overlap::{all_parts, are_disjoint};

impl Translator<'_> {
    /// Options of which at most one allows a value.
    pub fn visit_one_of(
        &mut self,
        at: &str,
        schemas: &[Value],
        keywords: &Keywords,
        closing: &Closing,
    ) -> Result<Vec<Value>, String> {
        let mut options = Vec::new();
        for (index, schema) in schemas.iter().enumerate() {
            let here = format!("{at}/{index}");
            let mut names = None;
            if let Some(outer) = &closing.options {
                let mut own = Names::of_option(self.document, schema)?;
                own.join(outer);
                names = Some(own).filter(|names| names.are_listed && !names.says_otherwise);
            }
            let mut all = vec![self.visit(&here, schema, closing.options.as_ref())?];
            for (other_index, other) in schemas.iter().enumerate().filter(|(i, _)| *i != index) {
                let types = || types_of(keywords);
                let is_excluded = match &names {
                    Some(names) => names.exclude(&all_parts(self.document, other)?, types()),
                    None => false,
                };
                if is_excluded || are_disjoint(self.document, schema, other, types())? {
                    continue;
                }
                let other_at = format!("{at}/{other_index}");
                let opposite = opposite(self.document, &other_at, other, 0).map_err(|reason| {
                    format!("{at}: oneOf: {index} and {other_index} may both be valid ({reason})")
                })?;
                all.push(self.visit(&other_at, &opposite, None)?);
            }
            let joined = all.len() > 1;
            let mut option = if joined { json!({"allOf": all}) } else { all.remove(0) };
            if joined && self.is_marked {
                option[PLACE] = here.into();
            }
            options.push(option);
        }
        Ok(options)
    }

    /// `if` with `then` and `else`: as one of two.
    pub fn visit_condition(
        &mut self,
        at: &str,
        condition: &Value,
        keywords: &Keywords,
    ) -> Result<Option<Value>, String> {
        let (then, other) = (keywords.get("then"), keywords.get("else"));
        if then.is_none() && other.is_none() {
            return Ok(None);
        }
        let here = format!("{at}/if");
        let mut holds = vec![self.visit(&here, condition, None)?];
        let opposite = opposite(self.document, &here, condition, 0)?;
        let mut fails = vec![self.visit(&here, &opposite, None)?];
        for (name, schema, all) in [("then", then, &mut holds), ("else", other, &mut fails)] {
            if let Some(schema) = schema {
                all.push(self.visit(&format!("{at}/{name}"), schema, None)?);
            }
        }
        Ok(Some(json!({"anyOf": [{"allOf": holds}, {"allOf": fails}]})))
    }
}
