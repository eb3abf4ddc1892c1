//! A layer: what was touched in it, what that means against the user's tree, and what is shown of it.

pub(crate) mod aside;
pub(crate) mod change;
pub(crate) mod diff;
pub(crate) mod overlay;
pub(crate) mod patch;
pub(crate) mod risk;
