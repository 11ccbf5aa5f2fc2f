//! The interface by which rules translate schemas inside a schema. So they need not depend on check.rs, which uses all
//! rules.

use serde_json::Value;

use crate::document::Document;
use crate::names::Names;

pub trait Visitor {
    fn document(&self) -> &Document;

    /// Translates `schema`, at the place `at`. `closing`: names that are allowed besides the schema's own; None for a
    /// part of a schema if the whole schema closes its objects.
    fn visit(&mut self, at: &str, schema: &Value, closing: Option<&Names>)
    -> Result<Value, String>;

    /// Stores the place `at` in a translated schema, if schemas are marked and it has no place yet.
    fn mark(&self, at: &str, visited: &mut Value);

    /// Translates a schema that closes its own objects.
    fn visit_whole(&mut self, at: &str, schema: &Value) -> Result<Value, String> {
        self.visit(at, schema, Some(&Names::default()))
    }
}
