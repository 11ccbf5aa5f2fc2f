//! Translates JSON Schemas to plainer ones for llguidance.

mod arrays;
mod check;
mod circles;
mod document;
mod keywords;
mod names;
mod negation;
mod objects;
mod options;
mod output;
mod overlap;
mod texts;
mod visitor;

pub use check::{PLACE, check_schema};
pub use document::Document;
