//! Hand a coding task to agents you do not have to trust.
#![forbid(unsafe_code)]

fn main() {}
