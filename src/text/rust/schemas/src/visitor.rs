//! The translation as its rules know it: they have it translate the schemas within one. So they need not know check.rs,
//! which knows them all.

use serde_json::Value;

use crate::document::Document;
use crate::names::Names;

pub trait Visitor {
    fn document(&self) -> &Document;

    /// Translates `schema`, at `at`. `closing`: none for a part of a schema that closes its objects as a whole; otherwise
    /// names that are allowed besides.
    fn visit(&mut self, at: &str, schema: &Value, closing: Option<&Names>)
    -> Result<Value, String>;

    /// Notes in a translated schema that it came from `at`, where the translation is to say so and nothing is noted yet.
    fn mark(&self, at: &str, visited: &mut Value);

    /// Translates a schema that stands for itself.
    fn visit_whole(&mut self, at: &str, schema: &Value) -> Result<Value, String> {
        self.visit(at, schema, Some(&Names::default()))
    }
}
