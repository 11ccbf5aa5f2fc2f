//! Strings: formats and patterns.

use serde_json::json;

use crate::output::Output;

const FORMATS: [&str; 10] =
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];
/// The rule that llguidance's dates lack: 29 February exists in years divisible by 4, in full centuries only if
/// divisible by 400.
const CALENDAR: &str = "^([0-9]{4}-(0[13-9]|1|02-([01]|2[0-8]))|\
                        ([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
/// pydantic's pattern for decimal numbers, with a look-ahead that requires a digit, and an equivalent pattern without
/// it.
const DECIMAL: (&str, &str) = (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", r"^[+-]?(\d+\.?\d*|\.\d+)$");

/// Adds a format. An unknown format adds nothing, as JSON Schema requires.
pub fn add_format(format: &str, output: &mut Output) {
    if FORMATS.contains(&format) {
        output.plain.insert("format".into(), format.into());
    }
    if matches!(format, "date" | "date-time") {
        output.besides.push(json!({"pattern": CALENDAR}));
    }
    if let Some(pattern) = pattern_of(format) {
        output.besides.push(json!({"pattern": pattern}));
    }
}

/// Returns the regular expression of a format that llguidance lacks: pydantic's uuid1 to uuid8.
pub fn pattern_of(format: &str) -> Option<String> {
    const HEX: &str = "[0-9a-fA-F]";
    let version = match format.strip_prefix("uuid")? {
        "" => HEX,
        version if version.len() == 1 && ('1'..='8').contains(&version.chars().next()?) => version,
        _ => return None,
    };
    let variant = if version == HEX { HEX } else { "[89abAB]" };
    Some(format!("^{HEX}{{8}}-{HEX}{{4}}-{version}{HEX}{{3}}-{variant}{HEX}{{3}}-{HEX}{{12}}$"))
}

pub fn is_known(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// Returns a pattern in a form that llguidance's regular expressions support.
pub fn plain_pattern(pattern: &str) -> &str {
    if pattern == DECIMAL.0 { DECIMAL.1 } else { pattern }
}
