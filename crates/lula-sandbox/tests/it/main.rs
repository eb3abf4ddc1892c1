//! Real sandboxes on this machine. A tier that cannot be built here fails its tests; nothing skips.

mod basics;
mod probes;
mod support;
