//! Filters and tests of Jinja2 that minijinja lacks or implements differently.

use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value, filters};

use crate::python_arguments::Arguments;
use crate::python_json::tojson;
use crate::python_lists::list_of;
use crate::python_methods::{self, Side, pad};
use crate::python_operators::{self, escaped};
use crate::python_text;
use crate::python_tuples::Group;

/// The filter that source.rs inserts into loops; templates do not use this name.
pub const LOOPED: &str = "pagoda_looped";

pub fn add_to(environment: &mut Environment) {
    environment.add_filter("tojson", tojson);
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("string", string);
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("replace", replace);
    environment.add_filter("dictsort", dictsort);
    environment.add_filter("first", first);
    environment.add_filter("last", last);
    environment.add_filter("format", printf);
    environment.add_filter("center", center);
    environment.add_filter("wordcount", wordcount);
    environment.add_filter("title", title);
    environment.add_filter("groupby", groupby);
    environment.add_filter("list", list);
    environment.add_filter(LOOPED, looped);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_test("callable", is_callable);
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

/// Returns a value's length; 0 if it is undefined.
fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    let kind = value.kind();
    value.len().ok_or_else(|| invalid(format!("cannot calculate length of value of type {kind}")))
}

fn string(value: &Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(_) => Ok(value.clone()),
        None => python_text::text(value).map(Value::from),
    }
}

fn escape(value: &Value) -> Result<Value, Error> {
    Ok(Value::from_safe_string(escaped(&string(value)?)))
}

fn default(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let arguments = Arguments::of(args, kwargs, &["default_value", "boolean"])?;
    if !value.is_undefined() && !(arguments.flag(1) && !value.is_true()) {
        return Ok(value.clone());
    }
    Ok(arguments.raw(0).cloned().unwrap_or_else(|| Value::from("")))
}

fn replace(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let arguments = Arguments::of(args, kwargs, &["old", "new", "count"])?;
    let text = python_text::text(value)?;
    let texts =
        [0, 1].map(|index| arguments.raw(index).map_or(Ok(String::new()), python_text::text));
    let [old, new] = texts;
    Ok(Value::from(python_methods::replace(&text, &old?, &new?, arguments.optional_integer(2)?)))
}

fn dictsort(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let names = &["case_sensitive", "by", "reverse"];
    let arguments = Arguments::of(args, kwargs, names)?;
    let given =
        names.iter().enumerate().filter_map(|(i, name)| Some((*name, arguments.get(i)?.clone())));
    filters::dictsort(value, Kwargs::from_iter(given))
}

fn first(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::first(value) }
}

fn last(value: Value) -> Result<Value, Error> {
    if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::last(value) }
}

fn printf(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let values = match args.is_empty() {
        true => Value::from(kwargs),
        false => Value::from(Tuple::from(args.to_vec())),
    };
    python_operators::modulo(&string(value)?, &values)
}

fn center(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let width = Arguments::of(args, kwargs, &["width"])?.width(0, Some(80))?;
    Ok(pad(&python_text::text(value)?, width, ' ', Side::Both))
}

fn wordcount(value: &Value) -> Result<usize, Error> {
    let text = python_text::text(value)?;
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    Ok(words.filter(|word| !word.is_empty()).count())
}

/// Capitalises the first letter of each word and lowercases the rest. White space and some signs separate words.
fn title(value: &Value) -> Result<String, Error> {
    let text = python_text::text(value)?;
    let separates =
        |c: char| python_methods::is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(separates) {
        let end = part.trim_end_matches(separates).len();
        let mut characters = part[..end].chars();
        out.extend(characters.next().into_iter().flat_map(char::to_uppercase));
        out.push_str(&characters.as_str().to_lowercase());
        out.push_str(&part[end..]);
    }
    Ok(out)
}

fn list(value: &Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(invalid("list: expected something to go through, got none".to_string()));
    }
    Ok(list_of(value.try_iter()?.collect()))
}

/// Returns the value that a loop iterates over. Refuses `none`, which minijinja would treat as an empty list.
fn looped(value: &Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(invalid("expected something to loop over, got none".to_string()));
    }
    Ok(value.clone())
}

fn groupby(value: Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let arguments = Arguments::of(args, kwargs, &["attribute", "default", "case_sensitive"])?;
    let attribute = arguments.raw(0).ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let attribute = python_text::text(attribute)?;
    let mut given = vec![("case_sensitive", Value::from(arguments.flag(2)))];
    given.extend(arguments.get(1).map(|default| ("default", default.clone())));
    let pairs = filters::groupby(value, Some(&attribute), Kwargs::from_iter(given))?;
    let groups = pairs.try_iter()?.map(|pair| {
        let items: Vec<Value> = pair.get_item(&Value::from(1))?.try_iter()?.collect();
        // If the keys of a group's items differ in case, the group gets the first item's key.
        let mut grouper = items.first().cloned().unwrap_or_default();
        for part in attribute.split('.') {
            let key = part.parse::<usize>().map_or_else(|_| Value::from(part), Value::from);
            grouper = grouper.get_item(&key)?;
        }
        if grouper.is_undefined() {
            grouper = arguments.get(1).cloned().unwrap_or_default();
        }
        Ok(Value::from_object(Group { grouper, list: list_of(items) }))
    });
    groups.collect::<Result<Vec<Value>, Error>>().map(Value::from)
}

fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Returns whether a value has a length and can be indexed, like a sequence in Python: strings and dicts too.
fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

fn is_callable(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Plain | ValueKind::Undefined)
}
