//! Prepares a request's messages for a template. The changes follow vLLM, whose clients send the same messages.

use serde_json::{Map, Value, json};

/// The keys that templates read. All other keys that clients send (`refusal`, `annotations`, `audio` ...) are removed.
const MESSAGE_KEYS: [&str; 11] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "tools",
    "tool_plan",
    "prefix",
    "reasoning_content",
    "reasoning",
    "thinking",
];
const CALL_KEYS: [&str; 5] = ["id", "type", "function", "name", "arguments"];
const FUNCTION_KEYS: [&str; 2] = ["name", "arguments"];

/// How a template uses a message's content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentUse {
    /// Prints it: parts are joined into one string.
    Text,
    /// Loops over its parts: a string becomes a list with one part.
    Parts,
    /// Tests whether it is a string, and otherwise loops over its parts: both stay as they are.
    Either,
}

/// Finds loops over a message's content in the tags of a template. Templates write `message.content`,
/// `message['content']`, or `content` for a variable or a macro's argument.
fn content_use(template: &str) -> ContentUse {
    let (mut walks, mut asks) = (false, false);
    for tag in tags(template) {
        if tag.split_whitespace().next() == Some("for") {
            let iterable = tag.split_once(" in ").map_or("", |(_, iterable)| iterable);
            walks |= is_content(iterable.split(" if ").next().unwrap_or(""));
        }
        asks |= !before_tests(tag, "string").is_empty();
    }
    match (walks, asks) {
        (false, _) => ContentUse::Text,
        (true, false) => ContentUse::Parts,
        (true, true) => ContentUse::Either,
    }
}

/// Returns the text before each `content is TEST` and `content is not TEST` in a tag.
fn before_tests<'a>(tag: &'a str, test: &str) -> Vec<&'a str> {
    let tests = [format!(" is {test}"), format!(" is not {test}")];
    let places = tests.iter().flat_map(|test| tag.match_indices(test.as_str()));
    let before = places.map(|(place, _)| tag[..place].rsplit_once(char::is_whitespace));
    before.flatten().filter(|(_, word)| is_content(word)).map(|(before, _)| before).collect()
}

/// Returns whether absent content must stay absent. DeepSeek's templates print calls if the role is assistant and
/// `message['content'] is none`.
fn needs_none(template: &str) -> bool {
    let mut before = tags(template).flat_map(|tag| before_tests(tag, "none"));
    before.any(|before| before.trim_end().ends_with(" and"))
}

/// Returns whether a template only concatenates a call's arguments with text. Then the arguments must be text.
fn adds_arguments(template: &str) -> bool {
    let names = ["['arguments']", "[\"arguments\"]", ".arguments"];
    let mut uses = names.iter().flat_map(|name| {
        template.match_indices(name).map(|(place, name)| {
            let before = template[..place].trim_end_matches(|c: char| !c.is_whitespace());
            let is_filtered = template[place + name.len()..].trim_start().starts_with('|');
            before.trim_end().ends_with('+') && !is_filtered
        })
    });
    uses.next().is_some_and(|first| first && uses.all(|is_added| is_added))
}

/// Returns whether an expression is a message's content, possibly with filters.
fn is_content(expression: &str) -> bool {
    let path = expression.split('|').next().unwrap_or("").trim().trim_matches(['(', ')']);
    let ends = [".content", "['content']", "[\"content\"]"];
    path == "content" || ends.iter().any(|end| path.ends_with(end))
}

/// Returns the text inside each {% %} tag, without whitespace control.
fn tags(template: &str) -> impl Iterator<Item = &str> {
    template
        .split("{%")
        .skip(1)
        .filter_map(|rest| rest.split("%}").next().map(|tag| tag.trim_matches(['-', '+']).trim()))
}

pub struct Options {
    content_use: ContentUse,
    /// Absent content stays `none`, because the template tests for it. Otherwise it becomes the empty text.
    keeps_none: bool,
    /// A call's arguments stay text.
    keeps_arguments: bool,
    /// The template knows the role `developer`. Otherwise `developer` becomes `system`.
    knows_developer: bool,
    /// gpt-oss's template raises an exception if a message with tool calls has both content and thinking. So thinking
    /// is removed.
    content_or_thinking: bool,
}

impl Options {
    pub fn of(template: &str) -> Options {
        Options {
            content_use: content_use(template),
            keeps_none: needs_none(template),
            keeps_arguments: adds_arguments(template),
            knows_developer: template.contains("developer"),
            content_or_thinking: template.contains("message.content and message.thinking"),
        }
    }
}

pub fn prepare(messages: Value, options: &Options) -> Result<Vec<Value>, String> {
    let Value::Array(messages) = messages else {
        return Err("messages: expected a list".to_string());
    };
    let prepare = |(index, message)| {
        prepare_message(message, options).map_err(|e| format!("messages[{index}]{e}"))
    };
    messages.into_iter().enumerate().map(prepare).collect()
}

fn prepare_message(message: Value, options: &Options) -> Result<Value, String> {
    let Value::Object(mut message) = message else {
        return Err(": expected an object".to_string());
    };
    let Some(role) = message.get("role").and_then(Value::as_str) else {
        return Err(".role: expected a string".to_string());
    };
    if role == "developer" && !options.knows_developer {
        message["role"] = json!("system");
    }
    let content = message.get_mut("content").map(Value::take).unwrap_or_default();
    let content = prepare_content(content, options).map_err(|e| format!(".content{e}"))?;
    let has_text = content.as_str().is_some_and(|text| !text.is_empty());
    message.insert("content".to_string(), content);
    keep_only(&mut message, &MESSAGE_KEYS);
    prepare_calls(&mut message, options.keeps_arguments);
    alias_reasoning(&mut message);
    if options.content_or_thinking && has_text && message.contains_key("tool_calls") {
        message.remove("thinking");
    }
    Ok(Value::Object(message))
}

/// Keeps these keys, unless their value is null or an empty list. A template asks whether a key is present
/// (`'tool_calls' in message`), and the `openai` client sends an answer back with `"tool_calls": null`. Content is
/// always kept.
fn keep_only(object: &mut Map<String, Value>, keys: &[&str]) {
    object.retain(|key, value| {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        keys.contains(&key.as_str()) && (key == "content" || !is_empty)
    });
}

fn prepare_content(content: Value, options: &Options) -> Result<Value, String> {
    let content_use = options.content_use;
    let texts = match content {
        Value::Null if options.keeps_none => return Ok(Value::Null),
        Value::Null if content_use == ContentUse::Parts => return Ok(json!([])),
        Value::Null => return Ok(json!("")),
        Value::String(text) if content_use == ContentUse::Parts => vec![text],
        Value::String(text) => return Ok(Value::String(text)),
        Value::Array(parts) => {
            let part = |(index, part)| part_text(part).map_err(|e| format!("[{index}]{e}"));
            parts.into_iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?
        }
        _ => return Err(": expected a string or a list of parts".to_string()),
    };
    if content_use == ContentUse::Text {
        return Ok(Value::String(texts.join("\n")));
    }
    Ok(texts.into_iter().map(|text| json!({"type": "text", "text": text})).collect())
}

fn part_text(part: Value) -> Result<String, String> {
    let part = match part {
        Value::String(text) => return Ok(text),
        Value::Object(part) => part,
        _ => return Err(": expected an object".to_string()),
    };
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("");
    let field = match kind {
        "text" | "input_text" | "output_text" => "text",
        "refusal" => "refusal",
        "" => return Err(".type: expected a string".to_string()),
        _ => return Err(format!(".type: expected text, got {kind}")),
    };
    let text = part.get(field).and_then(Value::as_str);
    text.map(str::to_string).ok_or_else(|| format!(".{field}: expected a string"))
}

fn prepare_calls(message: &mut Map<String, Value>, keeps_arguments: bool) {
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else { return };
    for call in calls.iter_mut().filter_map(Value::as_object_mut) {
        keep_only(call, &CALL_KEYS);
        if let Some(Value::Object(function)) = call.get_mut("function") {
            keep_only(function, &FUNCTION_KEYS);
            read_arguments(function, keeps_arguments);
        }
    }
}

/// Parses a call's arguments. Clients send them as a string of JSON, but templates print the value with `tojson`. A
/// string of anything but an object stays text.
fn read_arguments(function: &mut Map<String, Value>, keeps_text: bool) {
    let arguments = function.entry("arguments").or_insert_with(|| json!({}));
    let read = match arguments.as_str().map(str::trim) {
        Some("") => Some(json!({})),
        Some(_) if keeps_text => None,
        Some(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        None => None,
    };
    if let Some(value) = read {
        *arguments = value;
    }
    if keeps_text && !arguments.is_string() {
        *arguments = Value::String(arguments.to_string());
    }
}

/// Stores a previous answer's reasoning under all three names that templates read. Clients send any of them.
fn alias_reasoning(message: &mut Map<String, Value>) {
    let names = ["reasoning_content", "thinking", "reasoning"];
    let Some(reasoning) = names.iter().find_map(|name| message.get(*name)).cloned() else { return };
    for name in names {
        message.entry(name).or_insert_with(|| reasoning.clone());
    }
}
