//! Renders chat templates as Hugging Face transformers does (`apply_chat_template`), for text/chat_template.h.

use std::sync::Arc;
use std::time::Duration;

use minijinja::{Error, ErrorKind, Value};
use pagoda_jinja::Program;
use pagoda_sandbox::{Limits, Sandbox};
use serde_json::Value as Json;

use crate::messages::{self, Options};
use crate::views::ChatInputView;

/// Templates of checkpoints have up to 50 kB. The limit also bounds the stack that nested templates need.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// A rendering needs several copies of its input.
const MEMORY_PER_INPUT_BYTE: usize = 32;
/// Marks the end of a message that is to be continued. If the rendering lacks the trailing space, the template trims
/// messages.
const CONTINUE_TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A template that renders in a sandbox, within limits (see pagoda_sandbox).
pub struct TextTemplate {
    renderer: Arc<Renderer>,
    sandbox: Sandbox,
    limits: Limits,
}

/// A copy of text/chat_template.h's ChatInput.
pub struct Input {
    messages: Vec<u8>,
    tools: Vec<u8>,
    kwargs: Vec<u8>,
    bos_token: Vec<u8>,
    eos_token: Vec<u8>,
    add_generation_prompt: bool,
    continue_final_message: bool,
    unix_time: i64,
}

impl Input {
    fn copy_of(view: &ChatInputView) -> Input {
        Input {
            messages: view.messages.to_vec(),
            tools: view.tools.to_vec(),
            kwargs: view.kwargs.to_vec(),
            bos_token: view.bos_token.to_vec(),
            eos_token: view.eos_token.to_vec(),
            add_generation_prompt: view.add_generation_prompt,
            continue_final_message: view.continue_final_message,
            unix_time: view.unix_time,
        }
    }

    fn num_bytes(&self) -> usize {
        self.messages.len() + self.tools.len() + self.kwargs.len()
    }
}

impl TextTemplate {
    /// Compiles a template. `limits`: for one rendering, without the memory that its input adds.
    pub fn from_text(name: &[u8], text: &[u8], limits: Limits) -> Result<TextTemplate, String> {
        let name = String::from_utf8_lossy(name).into_owned();
        let text = std::str::from_utf8(text).map_err(|e| {
            format!("{name}: expected UTF-8, got other bytes at offset {}", e.valid_up_to())
        })?;
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(format!(
                "{name}: expected at most {MAX_TEMPLATE_BYTES} bytes, got {}",
                text.len()
            ));
        }
        let (inner_name, text) = (name.clone(), text.to_string());
        let sandbox = Sandbox::default();
        let (renderer, _) = sandbox
            .run(limits.with_input(text.len(), MEMORY_PER_INPUT_BYTE), move || {
                Renderer::compile(inner_name, &text)
            })
            .map_err(|failure| {
                failure.message(|message| {
                    format!("{name}: the template's compilation was stopped: {message}")
                })
            })?;
        Ok(TextTemplate { renderer: Arc::new(renderer), sandbox, limits })
    }

    /// Returns whether no rendering can start; see pagoda_sandbox.
    pub fn is_busy(&self) -> bool {
        self.sandbox.is_busy()
    }

    /// Renders within the template's limits and the time that is left, and takes from it what the rendering took.
    pub fn render(&self, view: &ChatInputView, time_left: &mut Duration) -> Result<String, String> {
        let name = &self.renderer.name;
        let input = Input::copy_of(view);
        let mut limits = self.limits.with_input(input.num_bytes(), MEMORY_PER_INPUT_BYTE);
        limits.time = limits.time.min(*time_left);
        let renderer = self.renderer.clone();
        let (run, used) = self.sandbox.run_timed(limits, move || renderer.render(&input));
        *time_left = time_left.saturating_sub(used);
        run.map(|(text, _)| text).map_err(|failure| {
            failure.message(|message| {
                format!("{name}: the rendering of these messages was stopped: {message}")
            })
        })
    }
}

struct Renderer {
    program: Program,
    name: String,
    options: Options,
}

/// Returns an error message such as "chat_template.jinja:12: unknown function: function `foo` is unknown".
fn describe(error: &Error, name: &str) -> String {
    let line = error.line().map_or(String::new(), |line| format!(":{line}"));
    let detail = error.detail().map_or(String::new(), |detail| format!(": {detail}"));
    let mut text = format!("{}{line}: {}{detail}", error.name().unwrap_or(name), error.kind());
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text.replace(['\n', '\r'], " ")
}

impl Renderer {
    fn compile(name: String, text: &str) -> Result<Renderer, String> {
        let program = Program::compile(&name, text).map_err(|e| describe(&e, &name))?;
        Ok(Renderer { program, name, options: Options::of(text) })
    }

    fn render(&self, input: &Input) -> Result<String, String> {
        if input.add_generation_prompt && input.continue_final_message {
            return Err(
                "add_generation_prompt and continue_final_message: expected one of the two"
                    .to_string(),
            );
        }
        let mut messages = messages::prepare(parse(&input.messages, "messages")?, &self.options)?;
        let continued = match input.continue_final_message {
            true => Some(tag_final_message(&mut messages)?),
            false => None,
        };
        let context = self.context(messages, input)?;
        let text = self.program.run(context).map_err(|e| describe(&e, &self.name))?;
        match continued {
            Some(message) => cut_at_tag(text, &message),
            None => Ok(text),
        }
    }

    fn context(&self, messages: Vec<Json>, input: &Input) -> Result<Value, String> {
        let reserved = ["messages", "tools", "documents", "add_generation_prompt"];
        let now = input.unix_time;
        let mut variables: Vec<(String, Value)> = vec![
            ("bos_token".to_string(), token(&input.bos_token)),
            ("eos_token".to_string(), token(&input.eos_token)),
            (
                "strftime_now".to_string(),
                Value::from_function(move |format: &str| strftime(format, now)),
            ),
            ("documents".to_string(), Value::from(())),
            ("tools".to_string(), optional(&input.tools, "tools")?),
            ("messages".to_string(), Value::from_iter(messages.into_iter().map(value_of))),
            ("add_generation_prompt".to_string(), Value::from(input.add_generation_prompt)),
        ];
        if !input.kwargs.is_empty() {
            let Json::Object(kwargs) = parse(&input.kwargs, "chat_template_kwargs")? else {
                return Err("chat_template_kwargs: expected an object".to_string());
            };
            for (name, value) in kwargs {
                if reserved.contains(&name.as_str()) {
                    return Err(format!(
                        "chat_template_kwargs.{name}: expected it in the request, outside of the kwargs"
                    ));
                }
                variables.push((name, value_of(value)));
            }
        }
        Ok(Value::from_pairs(variables))
    }
}

fn token(text: &[u8]) -> Value {
    Value::from(String::from_utf8_lossy(text).into_owned())
}

fn parse(json: &[u8], name: &str) -> Result<Json, String> {
    serde_json::from_slice(json).map_err(|e| format!("{name}: {e}"))
}

fn optional(json: &[u8], name: &str) -> Result<Value, String> {
    if json.is_empty() {
        return Ok(Value::from(()));
    }
    parse(json, name).map(value_of)
}

fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::from(items.into_iter().map(value_of).collect::<Vec<Value>>()),
        Json::Object(entries) => {
            Value::from_pairs(entries.into_iter().map(|(key, value)| (key, value_of(value))))
        }
    }
}

/// Appends the tag to the last text of the last message; returns the text without the tag.
fn tag_final_message(messages: &mut [Json]) -> Result<String, String> {
    let content = messages.last_mut().and_then(|message| message.get_mut("content"));
    let text = match content {
        Some(Json::Array(parts)) => parts.last_mut().and_then(|part| part.get_mut("text")),
        other => other,
    };
    let Some(Json::String(text)) = text else {
        return Err("continue_final_message: expected a last message with text".to_string());
    };
    let original = text.clone();
    text.push_str(CONTINUE_TAG);
    Ok(original)
}

fn cut_at_tag(mut text: String, message: &str) -> Result<String, String> {
    let place = text.rfind(CONTINUE_TAG.trim_end()).filter(|_| text.contains(message.trim()));
    let Some(place) = place else {
        return Err(
            "continue_final_message: the template does not print the final message as it is"
                .to_string(),
        );
    };
    let is_trimmed = !text[place..].starts_with(CONTINUE_TAG);
    text.truncate(place);
    if is_trimmed {
        text.truncate(text.trim_end().len());
    }
    Ok(text)
}

/// Formats local time with the C library, like Python's datetime.
fn strftime(format: &str, unix_time: i64) -> Result<String, Error> {
    let fail = || {
        Error::new(ErrorKind::InvalidOperation, format!("strftime_now: cannot format '{format}'"))
    };
    // The leading character distinguishes an empty result from a buffer that is too small.
    let c_format = std::ffi::CString::new(format!("x{format}")).map_err(|_| fail())?;
    let mut buffer = vec![0u8; 1024];
    let length = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        let time = unix_time as libc::time_t;
        if libc::localtime_r(&time, &mut parts).is_null() {
            return Err(fail());
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), c_format.as_ptr(), &parts)
    };
    if length == 0 {
        return Err(fail());
    }
    Ok(String::from_utf8_lossy(&buffer[1..length]).into_owned())
}
