//! A lending library: books, loans, fees and what stands on which shelf.

pub mod catalogue;
pub mod fees;
pub mod isbn;
pub mod loans;
