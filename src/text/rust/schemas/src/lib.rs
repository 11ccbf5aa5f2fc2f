//! JSON Schema made plainer for llguidance.

mod arrays;
mod check;
mod document;
mod keywords;
mod names;
mod negation;
mod objects;
mod options;
mod overlap;
mod texts;

pub use check::{PLACE, check_schema};
pub use document::Document;
