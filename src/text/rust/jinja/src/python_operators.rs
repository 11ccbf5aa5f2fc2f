//! Operators that differ between Python and minijinja. `%` formats strings, a negative step iterates backwards, and `~`
//! prints numbers as Python does. Text added to text marked safe is escaped. `<` and `>` refuse values that have no
//! order. lib.rs puts these operators into compiled templates.

use std::cmp::Ordering;

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::python_lists::list_of;
use crate::python_text::{self, write_text};
use crate::python_tuples::is_tuple;

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

fn integer(value: &Value) -> Option<i128> {
    let is_integer = value.is_integer() || value.kind() == ValueKind::Bool;
    if is_integer { i128::try_from(value.clone()).ok() } else { None }
}

fn number(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()).ok(),
        _ => None,
    }
}

fn from_integer(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

fn unsupported(operator: &str, left: &Value, right: &Value) -> Error {
    let (left, right) = (left.kind(), right.kind());
    invalid(format!("tried to use {operator} operator on unsupported types {left} and {right}"))
}

/// Computes `text % values`, or the remainder of numbers, which has the divisor's sign.
pub fn modulo(left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(text) = left.as_str() {
        return printf(text, left.is_safe(), right);
    }
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        let remainder =
            a.checked_rem(b).ok_or_else(|| invalid(format!("cannot divide {a} by {b}")))?;
        let is_opposite = remainder != 0 && (remainder < 0) != (b < 0);
        return Ok(from_integer(if is_opposite { remainder + b } else { remainder }));
    }
    match (number(left), number(right)) {
        (Some(a), Some(b)) if b != 0.0 => {
            let remainder = a % b;
            let is_opposite = remainder != 0.0 && (remainder < 0.0) != (b < 0.0);
            Ok(Value::from(if is_opposite { remainder + b } else { remainder.copysign(b) }))
        }
        (Some(a), Some(_)) => Err(invalid(format!("cannot divide {a} by zero"))),
        _ => Err(unsupported("%", left, right)),
    }
}

fn printf(text: &str, is_safe: bool, values: &Value) -> Result<Value, Error> {
    let values: Vec<Value> = match is_tuple(values) {
        true => values.try_iter()?.collect(),
        false => vec![values.clone()],
    };
    let printable = |value: Value| match value.kind() {
        ValueKind::Number | ValueKind::Bool | ValueKind::Map => Ok(value),
        ValueKind::String if is_safe => Ok(Value::from(escaped(&value))),
        ValueKind::String => Ok(value),
        _ => python_text::text(&value).map(Value::from),
    };
    let values = values.into_iter().map(printable).collect::<Result<Vec<Value>, Error>>()?;
    let text = format(FormatStyle::Printf, text, &values)?;
    Ok(if is_safe { Value::from_safe_string(text) } else { Value::from(text) })
}

/// Computes `left + right` for templates that mark text as safe, change lists or use `groupby`.
pub fn add(left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return Ok(match left.is_safe() || right.is_safe() {
            true => Value::from_safe_string(escaped(left) + &escaped(right)),
            false => Value::from([a, b].concat()),
        });
    }
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        let sum = a.checked_add(b).ok_or_else(|| invalid(format!("cannot add {a} and {b}")))?;
        return Ok(from_integer(sum));
    }
    if let (Some(a), Some(b)) = (number(left), number(right)) {
        return Ok(Value::from(a + b));
    }
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !is_list(left) || !is_list(right) || is_tuple(left) != is_tuple(right) {
        return Err(unsupported("+", left, right));
    }
    let items: Vec<Value> = left.try_iter()?.chain(right.try_iter()?).collect();
    Ok(if is_tuple(left) { Value::from(Tuple::from(items)) } else { list_of(items) })
}

/// Compares two numbers, two strings, two lists or two tuples. Other values have no order.
fn compare(left: &Value, right: &Value, operator: &str) -> Result<Option<Ordering>, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return Ok(Some(a.cmp(b)));
    }
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        return Ok(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (number(left), number(right)) {
        return Ok(a.partial_cmp(&b));
    }
    let is_list = |value: &Value| value.kind() == ValueKind::Seq;
    if !is_list(left) || !is_list(right) || is_tuple(left) != is_tuple(right) {
        return Err(unsupported(operator, left, right));
    }
    let (mut a, mut b) = (left.try_iter()?, right.try_iter()?);
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return compare(&a, &b, operator),
            (a, b) => return Ok(Some(a.is_some().cmp(&b.is_some()))),
        }
    }
}

pub fn less(left: &Value, right: &Value) -> Result<bool, Error> {
    compare(left, right, "<").map(|order| order == Some(Ordering::Less))
}

pub fn less_or_equal(left: &Value, right: &Value) -> Result<bool, Error> {
    compare(left, right, "<=").map(|order| order.is_some_and(Ordering::is_le))
}

pub fn greater(left: &Value, right: &Value) -> Result<bool, Error> {
    compare(left, right, ">").map(|order| order == Some(Ordering::Greater))
}

pub fn greater_or_equal(left: &Value, right: &Value) -> Result<bool, Error> {
    compare(left, right, ">=").map(|order| order.is_some_and(Ordering::is_ge))
}

/// Escapes text for HTML like Jinja2's library MarkupSafe; text marked safe stays as it is.
pub fn escaped(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    if value.is_safe() {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(character),
        }
    }
    out
}

pub fn concatenate(left: &Value, right: &Value) -> Result<Value, Error> {
    let mut out = python_text::text(left)?;
    write_text(&mut out, right)?;
    Ok(Value::from(out))
}

/// The positions that `start:stop:step` selects from `length` items.
struct Places {
    first: usize,
    count: usize,
    step: i64,
}

impl Places {
    fn of(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Places {
        let length = length as i64;
        let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let bound = |place: Option<i64>, absent: i64| match place {
            None => absent,
            Some(place) if place < 0 => place.saturating_add(length).max(lowest),
            Some(place) => place.min(highest),
        };
        let (from, to) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
        let (start, stop) = (bound(start, from), bound(stop, to));
        let distance = if step > 0 { stop - start } else { start - stop };
        let size = step.unsigned_abs() as usize;
        let count = if distance <= 0 { 0 } else { (distance as usize).div_ceil(size) };
        Places { first: start.max(0) as usize, count, step }
    }

    fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, step) = (self.first as i64, self.step);
        (0..self.count as i64).map(move |i| (first + i * step) as usize)
    }
}

/// Computes `value[start:stop:step]`.
pub fn slice(value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    let bound = |value: &Value| match value.is_none() {
        true => Ok(None),
        false => i64::try_from(value.clone()).map(Some),
    };
    let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
    if step == 0 {
        return Err(invalid("cannot slice by a step of 0".to_string()));
    }
    if let Some(text) = value.as_str() {
        let characters: Vec<char> = text.chars().collect();
        let places = Places::of(characters.len(), start, stop, step);
        return Ok(Value::from(places.indices().map(|i| characters[i]).collect::<String>()));
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::Seq | ValueKind::Iterable => slice_list(value, start, stop, step),
        kind => Err(invalid(format!("value of type {kind} cannot be sliced"))),
    }
}

fn slice_list(
    value: &Value,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<Value, Error> {
    let items: Vec<Value>;
    let taken: Vec<Value> = match value.len() {
        Some(length) if step > 0 => {
            let places = Places::of(length, start, stop, step);
            value.try_iter()?.skip(places.first).step_by(step as usize).take(places.count).collect()
        }
        _ => {
            items = value.try_iter()?.collect();
            let places = Places::of(items.len(), start, stop, step);
            places.indices().map(|i| items[i].clone()).collect()
        }
    };
    Ok(if is_tuple(value) { Value::from(Tuple::from(taken)) } else { list_of(taken) })
}
