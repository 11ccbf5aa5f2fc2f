//! Lists that a template changes: `{% set _ = ids.append(id) %}`. minijinja's lists are immutable. If a template calls
//! such a method, lib.rs builds the template's lists with this module.
//!
//! A list holds text, numbers, other lists and dicts. It cannot hold itself at any depth, because it could then neither
//! be printed nor freed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::python_arguments::Arguments;

/// The methods of Python that change a list, as far as they are supported.
const CHANGES: [&str; 7] = ["append", "extend", "insert", "pop", "remove", "clear", "reverse"];
/// The same limit as for printing (python_text.rs).
const MAX_DEPTH: usize = 250_000;

/// Returns whether the text of a template may change a list.
pub fn are_changed(text: &str) -> bool {
    CHANGES.iter().any(|method| text.contains(&format!(".{method}")))
}

#[derive(Debug)]
struct List(Mutex<Vec<Value>>);

impl List {
    fn items(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items().get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items().len())
    }
}

pub fn list_of(items: Vec<Value>) -> Value {
    Value::from_object(List(Mutex::new(items)))
}

/// Returns a copy of a constant in which every list can change.
pub fn copy_of(constant: &Value) -> Value {
    let items = || constant.try_iter().into_iter().flatten().map(|item| copy_of(&item)).collect();
    match constant.kind() {
        ValueKind::Seq if constant.is_tuple() => Value::from(Tuple::from(items())),
        ValueKind::Seq => list_of(items()),
        _ => constant.clone(),
    }
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

/// Checks that `list` may hold a value.
fn check(value: &Value, list: &Arc<List>, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("a value is nested too deep".to_string()));
    }
    match value.kind() {
        ValueKind::Seq => {
            if value.downcast_object::<List>().is_some_and(|held| Arc::ptr_eq(&held, list)) {
                return Err(invalid("a list cannot hold itself".to_string()));
            }
            value.try_iter()?.try_for_each(|item| check(&item, list, depth + 1))
        }
        // A namespace is refused, because it may hold the list later.
        ValueKind::Map if !is_namespace(value) => value
            .try_iter()?
            .try_for_each(|key| check(&value.get_item(&key)?, list, depth + 1)),
        ValueKind::Map | ValueKind::Iterable | ValueKind::Plain | ValueKind::Invalid => Err(invalid(
            "expected text, a number, a list or a dict to be put into a list, got something else"
                .to_string(),
        )),
        _ => Ok(()),
    }
}

fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Returns the position of a Python index; None if it is before the first item.
fn place_of(index: i64, length: usize) -> Option<usize> {
    let place = if index < 0 { index + length as i64 } else { index };
    usize::try_from(place).ok()
}

fn pop(list: &List, arguments: &Arguments) -> Result<Value, Error> {
    let mut items = list.items();
    let place = place_of(arguments.optional_integer(0)?.unwrap_or(-1), items.len());
    match place.filter(|place| *place < items.len()) {
        Some(place) => Ok(items.remove(place)),
        None => Err(invalid("pop: the list has no such item".to_string())),
    }
}

fn extend(list: &Arc<List>, more: &Value) -> Result<(), Error> {
    if more.is_none() {
        return Err(invalid("extend: expected a list, got none".to_string()));
    }
    let more: Vec<Value> = more.try_iter()?.collect();
    more.iter().try_for_each(|item| check(item, list, 0))?;
    list.items().extend(more);
    Ok(())
}

/// Calls a method that changes the list; returns None for other methods.
pub fn change(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    if !CHANGES.contains(&method) {
        return Ok(None);
    }
    let Some(list) = value.downcast_object::<List>() else {
        let expected =
            "expected a list that the template has written, got one that does not change";
        return Err(invalid(format!("{method}: {expected}")));
    };
    let value_at = |arguments: &Arguments, index: usize| {
        arguments.raw(index).cloned().ok_or_else(|| Error::from(ErrorKind::MissingArgument))
    };
    match method {
        "append" => {
            let item = value_at(&Arguments::bind(args, &["object"])?, 0)?;
            check(&item, &list, 0)?;
            list.items().push(item);
        }
        "extend" => extend(&list, &value_at(&Arguments::bind(args, &["iterable"])?, 0)?)?,
        "insert" => {
            let arguments = Arguments::bind(args, &["index", "object"])?;
            let item = value_at(&arguments, 1)?;
            check(&item, &list, 0)?;
            let index = arguments.optional_integer(0)?;
            let index = index.ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
            let mut items = list.items();
            let place = place_of(index, items.len()).unwrap_or(0).min(items.len());
            items.insert(place, item);
        }
        "pop" => return pop(&list, &Arguments::bind(args, &["index"])?).map(Some),
        "remove" => {
            let item = value_at(&Arguments::bind(args, &["value"])?, 0)?;
            let held: Vec<Value> = list.items().clone();
            let place = held.iter().position(|other| *other == item);
            let place =
                place.ok_or_else(|| invalid("remove: the value is not in the list".to_string()))?;
            list.items().remove(place);
        }
        "clear" => list.items().clear(),
        _ => list.items().reverse(),
    }
    Ok(Some(Value::from(())))
}
