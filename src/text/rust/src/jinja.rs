//! minijinja set up as transformers sets up Jinja2, and templates compiled for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{self, CodeGenerator, Instruction, Instructions};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};

use crate::{jinja_filters, python_methods, python_operators, python_text};

/// Instructions that one rendering may take. A conversation of a thousand messages takes some hundred thousand.
const FUEL: u64 = 5_000_000;

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn print(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.write_str(text)?,
        None => out.write_str(&python_text::text(value)?)?,
    }
    Ok(())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(print);
    environment.set_unknown_method_callback(python_methods::call);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    jinja_filters::add_to(&mut environment);
    // No template can name these: compiled ones call them in the place of operators.
    environment.add_filter("%", python_operators::modulo);
    environment.add_filter("+", python_operators::add);
    environment.add_filter("~", python_operators::concatenate);
    environment.add_filter("[:]", python_operators::slice);
    environment
}

/// transformers knows {% generation %} blocks, which mark a model's own text for training. They print what is in them, and
/// what they set is set in them alone.
fn without_generation_tags(text: &str) -> String {
    let mut parts = text.split("{%");
    let mut out = parts.next().unwrap_or("").to_string();
    for part in parts {
        out.push_str("{%");
        let Some((tag, rest)) = part.split_once("%}") else {
            out.push_str(part);
            continue;
        };
        match tag.trim_matches(['-', '+']).trim() {
            "generation" => out.push_str(&tag.replace("generation", " with ")),
            "endgeneration" => out.push_str(&tag.replace("endgeneration", " endwith ")),
            _ => out.push_str(tag),
        }
        out.push_str("%}");
        out.push_str(rest);
    }
    out
}

pub struct Program {
    environment: Environment<'static>,
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    // The last to leave: the instructions point into them.
    _name: Arc<str>,
    _text: Arc<str>,
}

impl Program {
    pub fn compile(name: &str, text: &str) -> Result<Program, Error> {
        // Jinja2 reads all line ends as one.
        let text = without_generation_tags(text).replace("\r\n", "\n").replace('\r', "\n");
        let (name, text): (Arc<str>, Arc<str>) = (Arc::from(name), Arc::from(text));
        // The compiled template borrows both; they do not move, and leave with it.
        let (static_name, static_text): (&'static str, &'static str) =
            unsafe { (&*Arc::as_ptr(&name), &*Arc::as_ptr(&text)) };
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        let tree = machinery::parse(static_text, static_name, syntax)?;
        let mut generator = CodeGenerator::new(static_name, static_text);
        generator.compile_stmt(&tree);
        let (mut instructions, mut blocks) = generator.finish();
        let marks_text = ["safe", "escape", "|e", "| e"].iter().any(|mark| text.contains(mark));
        for part in blocks.values_mut().chain([&mut instructions]) {
            take_python_operators(part, marks_text);
        }
        Ok(Program { environment: environment(), instructions, blocks, _name: name, _text: text })
    }

    pub fn run(&self, variables: Value) -> Result<String, Error> {
        let mut text = String::new();
        let mut output = machinery::make_string_output(&mut text);
        machinery::eval(
            &self.environment,
            &self.instructions,
            variables,
            &self.blocks,
            &mut output,
            AutoEscape::None,
        )?;
        drop(output);
        Ok(text)
    }
}

/// A filter takes its values from the stack as an operator does, so it stands in for one.
fn take_python_operators(instructions: &mut Instructions, marks_text: bool) {
    const NOT_CACHED: u8 = !0;
    let mut index = 0;
    while let Some(instruction) = instructions.get_mut(index) {
        let replacement = match instruction {
            Instruction::Rem => Some(("%", 2)),
            Instruction::StringConcat => Some(("~", 2)),
            Instruction::Slice => Some(("[:]", 4)),
            // Only text that is marked safe makes it differ.
            Instruction::Add if marks_text => Some(("+", 2)),
            _ => None,
        };
        if let Some((name, num_values)) = replacement {
            *instruction = Instruction::ApplyFilter(name, Some(num_values), NOT_CACHED);
        }
        index += 1;
    }
}
