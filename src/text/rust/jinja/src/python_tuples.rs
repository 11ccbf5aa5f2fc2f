//! Tuples: minijinja's own, and the pairs that `groupby` returns.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};

/// A pair that `groupby` returns. Its two items also have names.
#[derive(Debug)]
pub struct Group {
    pub grouper: Value,
    pub list: Value,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (key.as_usize(), key.as_str()) {
            (Some(0), _) | (_, Some("grouper")) => Some(self.grouper.clone()),
            (Some(1), _) | (_, Some("list")) => Some(self.list.clone()),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}

pub fn is_tuple(value: &Value) -> bool {
    value.is_tuple() || value.downcast_object_ref::<Group>().is_some()
}
