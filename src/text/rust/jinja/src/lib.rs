//! Sets up minijinja like transformers sets up Jinja2, and compiles templates for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{self, CodeGenerator, Instruction, Instructions, Span, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};

mod filters;
mod python_arguments;
mod python_json;
mod python_lists;
mod python_methods;
mod python_operators;
mod python_text;
mod python_tuples;
mod source;

/// The most instructions of one rendering. A conversation of a thousand messages takes some hundred thousand.
const FUEL: u64 = 5_000_000;
/// The function that builds a list that can change.
const LIST: &str = "[]";

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
    filters::add_to(&mut environment);
    // Templates cannot write these names. Compiled templates call the filters in place of operators.
    environment.add_filter("%", python_operators::modulo);
    environment.add_filter("+", python_operators::add);
    environment.add_filter("~", python_operators::concatenate);
    environment.add_filter("[:]", python_operators::slice);
    environment.add_filter("<", python_operators::less);
    environment.add_filter("<=", python_operators::less_or_equal);
    environment.add_filter(">", python_operators::greater);
    environment.add_filter(">=", python_operators::greater_or_equal);
    environment.add_function(LIST, |items: Rest<Value>| python_lists::list_of(items.to_vec()));
    environment
}

pub struct Program {
    environment: Environment<'static>,
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    // Dropped last, because the instructions point into these strings.
    _names: Vec<Arc<str>>,
}

impl Program {
    pub fn compile(name: &str, text: &str) -> Result<Program, Error> {
        // Like Jinja2, treats all kinds of line ends as \n.
        let text = source::rewritten(&text.replace("\r\n", "\n").replace('\r', "\n"));
        let (name, text): (Arc<str>, Arc<str>) = (Arc::from(name), Arc::from(text));
        // The compiled template borrows both strings. They do not move, and `_names` drops them after it.
        let (static_name, static_text): (&'static str, &'static str) =
            unsafe { (&*Arc::as_ptr(&name), &*Arc::as_ptr(&text)) };
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        let tree = machinery::parse(static_text, static_name, syntax.clone())?;
        check_literals(static_text, syntax)?;
        let mut generator = CodeGenerator::new(static_name, static_text);
        generator.compile_stmt(&tree);
        let (mut instructions, mut blocks) = generator.finish();
        let marks_text = ["safe", "escape", "|e", "| e"].iter().any(|mark| text.contains(mark));
        let mut environment = environment();
        let changes_lists = python_lists::are_changed(&text);
        let has_groups = text.contains("groupby");
        let mut names = vec![name, text];
        for part in blocks.values_mut().chain([&mut instructions]) {
            take_python_operators(part, marks_text || changes_lists || has_groups);
            if changes_lists {
                take_python_lists(part, &mut environment, &mut names);
            }
        }
        Ok(Program { environment, instructions, blocks, _names: names })
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

/// Refuses comparisons of two literals that have no order. minijinja's compiler evaluates such comparisons itself, so
/// python_operators.rs never sees them.
fn check_literals(text: &str, syntax: SyntaxConfig) -> Result<(), Error> {
    let tokens: Vec<(Token, Span)> =
        machinery::tokenize(text, false, syntax).collect::<Result<_, Error>>()?;
    let kind = |token: &Token| match token {
        Token::Str(_) | Token::String(_) => Some("string"),
        Token::Int(_) | Token::Int128(_) | Token::Float(_) => Some("number"),
        Token::Ident("none" | "None") => Some("none"),
        _ => None,
    };
    let is_end = |token: &Token| match token {
        Token::VariableStart | Token::VariableEnd | Token::BlockEnd | Token::Comma => true,
        Token::ParenOpen | Token::ParenClose | Token::Assign => true,
        Token::Ident(word) => ["and", "or", "if", "elif", "else", "not"].contains(word),
        _ => false,
    };
    for window in tokens.windows(5) {
        let [before, left, operator, right, behind] = window else { continue };
        let is_order = matches!(operator.0, Token::Lt | Token::Lte | Token::Gt | Token::Gte);
        let (Some(a), Some(b)) = (kind(&left.0), kind(&right.0)) else { continue };
        if is_order && is_end(&before.0) && is_end(&behind.0) && (a != b || a == "none") {
            let detail = format!(
                "line {}: tried to use {} operator on unsupported types {a} and {b}",
                operator.1.start_line, operator.0
            );
            return Err(Error::new(ErrorKind::InvalidOperation, detail));
        }
    }
    Ok(())
}

/// Makes a template's list expressions build lists that can change. The function LIST builds a list from the items on
/// the stack. Each constant list gets a function of its own that copies it; `names` keeps that function's name alive.
fn take_python_lists(
    instructions: &mut Instructions<'static>,
    environment: &mut Environment<'static>,
    names: &mut Vec<Arc<str>>,
) {
    let mut index = 0;
    while let Some(instruction) = instructions.get_mut(index) {
        match instruction {
            Instruction::BuildList(Some(length)) => {
                if let Ok(length) = u16::try_from(*length) {
                    *instruction = Instruction::CallFunction(LIST, Some(length));
                }
            }
            Instruction::LoadConst(constant) if constant.kind() == ValueKind::Seq => {
                let constant = constant.clone();
                let name: Arc<str> = Arc::from(format!("[{}]", names.len()));
                let static_name: &'static str = unsafe { &*Arc::as_ptr(&name) };
                names.push(name);
                environment.add_function(static_name, move || python_lists::copy_of(&constant));
                *instruction = Instruction::CallFunction(static_name, Some(0));
            }
            _ => {}
        }
        index += 1;
    }
}

/// Replaces operators by filters with Python's rules. A filter reads its values from the stack like an operator.
/// `adds`: replaces `+` too, which differs for text marked safe, for lists that change, and for the pairs of `groupby`.
fn take_python_operators(instructions: &mut Instructions, adds: bool) {
    const NOT_CACHED: u8 = !0;
    let mut index = 0;
    while let Some(instruction) = instructions.get_mut(index) {
        let replacement = match instruction {
            Instruction::Rem => Some(("%", 2)),
            Instruction::StringConcat => Some(("~", 2)),
            Instruction::Slice => Some(("[:]", 4)),
            Instruction::Lt => Some(("<", 2)),
            Instruction::Lte => Some(("<=", 2)),
            Instruction::Gt => Some((">", 2)),
            Instruction::Gte => Some((">=", 2)),
            Instruction::Add if adds => Some(("+", 2)),
            _ => None,
        };
        if let Some((name, num_values)) = replacement {
            *instruction = Instruction::ApplyFilter(name, Some(num_values), NOT_CACHED);
        }
        index += 1;
    }
}
