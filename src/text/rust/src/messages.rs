//! What becomes of a request's messages before a template sees them. It follows vLLM, whose clients send the same.

use serde_json::{Map, Value, json};

/// What a template does with a message's content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ContentUse {
    /// Prints it: parts are joined into one string.
    Text,
    /// Walks through its parts: a string becomes a list of one.
    Parts,
    /// Looks whether it is a string and walks through it otherwise: both stay as they come.
    Either,
}

/// Finds loops over a message's content. Reading the tags is enough: templates name it `message.content`,
/// `message['content']`, or take it into a variable or a macro's argument called `content`.
pub fn content_use(template: &str) -> ContentUse {
    let (mut walks, mut asks) = (false, false);
    for tag in tags(template) {
        if tag.split_whitespace().next() == Some("for") {
            let iterable = tag.split_once(" in ").map_or("", |(_, iterable)| iterable);
            walks |= is_content(iterable.split(" if ").next().unwrap_or(""));
        }
        asks |= [" is string", " is not string"].iter().any(|test| {
            let before = tag.split_once(test).map_or("", |(before, _)| before);
            before.split_whitespace().last().is_some_and(is_content)
        });
    }
    match (walks, asks) {
        (false, _) => ContentUse::Text,
        (true, false) => ContentUse::Parts,
        (true, true) => ContentUse::Either,
    }
}

/// Whether an expression, its filters aside, is a message's content.
fn is_content(expression: &str) -> bool {
    let path = expression.split('|').next().unwrap_or("").trim().trim_matches(['(', ')']);
    let ends = [".content", "['content']", "[\"content\"]"];
    path == "content" || ends.iter().any(|end| path.ends_with(end))
}

/// The insides of {% %} tags, without whitespace control.
fn tags(template: &str) -> impl Iterator<Item = &str> {
    template
        .split("{%")
        .skip(1)
        .filter_map(|rest| rest.split("%}").next().map(|tag| tag.trim_matches(['-', '+']).trim()))
}

pub struct Options {
    pub content_use: ContentUse,
    /// A template that knows nothing of developers gets their messages as the system's.
    pub knows_developer: bool,
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
    let content =
        prepare_content(content, options.content_use).map_err(|e| format!(".content{e}"))?;
    message.insert("content".to_string(), content);
    read_arguments(&mut message);
    alias_reasoning(&mut message);
    Ok(Value::Object(message))
}

fn prepare_content(content: Value, content_use: ContentUse) -> Result<Value, String> {
    let texts = match content {
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

/// Clients send a call's arguments as a string of JSON; templates print them with `tojson`, so they become the value.
fn read_arguments(message: &mut Map<String, Value>) {
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else { return };
    for call in calls {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        let read = arguments.as_str().map(|text| match text.trim() {
            "" => Some(json!({})),
            text => serde_json::from_str(text).ok(),
        });
        if let Some(Some(value)) = read {
            *arguments = value;
        }
    }
}

/// Templates read an earlier answer's reasoning under the first name; clients send any of the three.
fn alias_reasoning(message: &mut Map<String, Value>) {
    let names = ["reasoning_content", "thinking", "reasoning"];
    let reasoning =
        names.iter().filter_map(|name| message.get(*name)).find(|value| !value.is_null());
    if let Some(reasoning) = reasoning.cloned() {
        message.insert("reasoning_content".to_string(), reasoning.clone());
        message.entry("thinking").or_insert(reasoning);
    }
}
