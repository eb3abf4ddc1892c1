//! Source files as syntax trees, and the few questions that patches ask of them.

mod kinds;
mod language;
mod source;
mod test_code;
mod walks;

pub(crate) use kinds::{
    binary, call, condition, function, is_block, is_block_value, is_expression, is_function,
    is_given, member, statement,
};
pub use language::RepairLanguage;
pub(crate) use source::ParsedSource;
pub(crate) use test_code::in_test_code;
pub use test_code::is_test_path;
pub(crate) use walks::{child, children, named, nearest, walk};
