//! The arguments of a call in a template, bound by position or by name as in Python.

use minijinja::value::{Kwargs, Rest};
use minijinja::{Error, ErrorKind, Value};

/// The largest width to which text may be padded.
const MAX_WIDTH: i64 = 1 << 20;

pub struct Arguments {
    names: &'static [&'static str],
    values: Vec<Option<Value>>,
}

impl Arguments {
    /// Binds the arguments of a filter.
    pub fn of(
        args: Rest<Value>,
        kwargs: Kwargs,
        names: &'static [&'static str],
    ) -> Result<Arguments, Error> {
        let args: Vec<Value> = args.iter().cloned().chain([Value::from(kwargs)]).collect();
        Arguments::bind(&args, names)
    }

    /// Binds the arguments of a method; keyword arguments are the last item of `args`.
    pub fn bind(args: &[Value], names: &'static [&'static str]) -> Result<Arguments, Error> {
        let (by_name, by_place) = match args.split_last() {
            Some((last, rest)) if last.is_kwargs() => (Some(last), rest),
            _ => (None, args),
        };
        if by_place.len() > names.len() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let mut values: Vec<Option<Value>> = by_place.iter().cloned().map(Some).collect();
        values.resize(names.len(), None);
        for key in by_name.into_iter().flat_map(|map| map.try_iter()).flatten() {
            let place = names.iter().position(|name| key.as_str() == Some(*name));
            let (Some(place), Some(map)) = (place, by_name) else {
                let detail = format!("unexpected argument {key}");
                return Err(Error::new(ErrorKind::TooManyArguments, detail));
            };
            values[place] = Some(map.get_item(&key)?);
        }
        Ok(Arguments { names, values })
    }

    /// Returns an argument; None if it is absent or `none`, for parameters whose `none` means absent.
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.values[index].as_ref().filter(|value| !value.is_none())
    }

    pub fn raw(&self, index: usize) -> Option<&Value> {
        self.values[index].as_ref()
    }

    fn wrong(&self, index: usize, expected: &str) -> Error {
        let got = match self.raw(index) {
            Some(value) => value.kind().to_string(),
            None => return Error::from(ErrorKind::MissingArgument),
        };
        let detail = format!("{}: expected {expected}, got {got}", self.names[index]);
        Error::new(ErrorKind::InvalidOperation, detail)
    }

    pub fn text(&self, index: usize) -> Result<&str, Error> {
        self.raw(index).and_then(Value::as_str).ok_or_else(|| self.wrong(index, "a string"))
    }

    pub fn optional_text(&self, index: usize) -> Result<Option<&str>, Error> {
        if self.get(index).is_some() { self.text(index).map(Some) } else { Ok(None) }
    }

    pub fn optional_integer(&self, index: usize) -> Result<Option<i64>, Error> {
        let Some(value) = self.get(index) else { return Ok(None) };
        let integer = if value.is_integer() { i64::try_from(value.clone()).ok() } else { None };
        integer.map(Some).ok_or_else(|| self.wrong(index, "an integer"))
    }

    /// Returns the number of characters to which a text is padded. `absent`: the default.
    pub fn width(&self, index: usize, absent: Option<i64>) -> Result<usize, Error> {
        let width = self.optional_integer(index)?.or(absent);
        let width = width.filter(|width| *width <= MAX_WIDTH);
        let width = width.ok_or_else(|| self.wrong(index, "a width of at most 1048576"))?;
        Ok(width.max(0) as usize)
    }

    pub fn flag(&self, index: usize) -> bool {
        self.get(index).is_some_and(Value::is_true)
    }
}
