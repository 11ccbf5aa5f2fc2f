//! A grammar of llguidance for JSON text that fits a JSON Schema. If llguidance refuses the schema, it also finds the
//! place of the error.

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::{GrammarBuilder, JsonCompileOptions};
use pagoda_schemas::{Document, PLACE, check_schema};
use serde_json::{Map, Value, json};

/// \u is not allowed: a name could be written in two ways, and so pass as one that the schema does not list.
const JSON_ESCAPES: &str = "nrbtf\\\"";
/// The characters allowed in a pattern for white space. Outside braces, they match white space alone.
const WHITE_SPACE_PATTERN: &str = " \t\n\r[]()?*+|{},0123456789";

pub struct JsonGrammar {
    document: Document,
    options: Map<String, Value>,
}

impl JsonGrammar {
    /// Makes a grammar. `white_space`: a regular expression for optional white space after ',' and ':'; empty: none.
    /// There is no white space elsewhere. llguidance's default allows it before ',' and ':', where small models lose
    /// track of the structure.
    pub fn new(schema: &str, white_space: &str) -> Result<JsonGrammar, String> {
        let white_space = match white_space {
            "" => String::new(),
            pattern => format!("({})?", white_space_pattern(pattern)?),
        };
        let mut options = Map::new();
        options.insert("json_allowed_escapes".into(), JSON_ESCAPES.into());
        options.insert("whitespace_flexible".into(), false.into());
        options.insert("item_separator".into(), format!(",{white_space}").into());
        options.insert("key_separator".into(), format!(":{white_space}").into());
        let schema = serde_json::from_str(schema).map_err(|error| format!("not JSON: {error}"))?;
        Ok(JsonGrammar { document: Document::new(schema)?, options })
    }

    pub fn grammar(&self) -> Result<TopLevelGrammar, String> {
        Ok(TopLevelGrammar::from_json_schema(self.checked_schema()?))
    }

    /// Returns the schema in a form that llguidance enforces completely.
    pub fn checked_schema(&self) -> Result<Value, String> {
        let mut schema = match check_schema(&self.document, false)? {
            Value::Bool(true) => json!({}),
            Value::Bool(false) => return Err("#: false allows no answer".into()),
            schema => schema,
        };
        schema["x-guidance"] = self.options.clone().into();
        Ok(schema)
    }

    /// Returns whether llguidance refuses this schema alone.
    pub fn is_refused(&self, limits: &ParserLimits) -> bool {
        let builder = GrammarBuilder::new(None, limits.clone());
        let schema = self.checked_schema();
        let compiled =
            schema.map(|schema| JsonCompileOptions::default().json_to_llg(builder, schema));
        !matches!(compiled, Ok(Ok(_)))
    }

    /// Returns `error`, which llguidance gives for the whole schema, with the place of the innermost schema that alone
    /// gives the same kind of error.
    pub fn with_place(&self, error: &str, limits: &ParserLimits) -> String {
        let found = check_schema(&self.document, true).ok().and_then(|mut schema| {
            let keywords = schema.as_object_mut()?;
            let definitions = keywords.remove("$defs");
            // References are replaced by `true`, because each definition is checked separately.
            let names = definitions.iter().filter_map(Value::as_object).flat_map(Map::keys);
            let stubs: Map<String, Value> = names.map(|name| (name.clone(), true.into())).collect();
            let finder = Finder { stubs: stubs.into(), limits, is_empty: is_about_nothing(error) };
            finder.find(&schema).or_else(|| finder.find(&definitions?))
        });
        found.unwrap_or_else(|| format!("#: {error}"))
    }
}

struct Finder<'a> {
    stubs: Value,
    limits: &'a ParserLimits,
    /// Whether to find a schema that allows nothing, or else one that llguidance does not support.
    is_empty: bool,
}

impl Finder<'_> {
    fn find(&self, schema: &Value) -> Option<String> {
        match schema {
            Value::Array(schemas) => schemas.iter().find_map(|schema| self.find(schema)),
            Value::Object(keywords) => {
                let inner = keywords.values().find_map(|value| self.find(value));
                inner.or_else(|| self.failure(keywords))
            }
            _ => None,
        }
    }

    fn failure(&self, keywords: &Map<String, Value>) -> Option<String> {
        let place = keywords.get(PLACE)?.as_str()?;
        let mut schema = keywords.clone();
        schema.insert("$defs".into(), self.stubs.clone());
        let builder = GrammarBuilder::new(None, self.limits.clone());
        let compiled = JsonCompileOptions::default().json_to_llg(builder, schema.into());
        let error = compiled.err()?.to_string();
        (is_about_nothing(&error) == self.is_empty).then(|| format!("{place}: {error}"))
    }
}

fn is_about_nothing(error: &str) -> bool {
    error.contains("nsatisfiable")
}

/// Returns a client's pattern for white space, rewritten to match JSON's white space alone.
fn white_space_pattern(text: &str) -> Result<String, String> {
    let refusal = || {
        format!(
            "whitespace_pattern: expected a regular expression of spaces, tabs and line ends, got '{text}'"
        )
    };
    let mut pattern = String::new();
    let mut is_count = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('s') => pattern.push_str("[ \\t\\r\\n]"),
                Some(c @ ('t' | 'r' | 'n')) => pattern.extend(['\\', c]),
                Some('x') if chars.as_str().starts_with("20") => {
                    chars = chars.as_str()[2..].chars();
                    pattern.push_str("\\x20");
                }
                _ => return Err(refusal()),
            },
            '0'..='9' | ',' if !is_count => return Err(refusal()),
            c if WHITE_SPACE_PATTERN.contains(c) => {
                is_count = c == '{' || (is_count && c != '}');
                pattern.push(c);
            }
            _ => return Err(refusal()),
        }
    }
    Ok(pattern)
}
