//! Real sandboxes on this machine. A tier that cannot be built here fails its tests; nothing skips.

// Helpers of tests panic like tests do.
#![allow(clippy::unwrap_used)]

mod basics;
mod bombs;
mod built_ins;
mod containers;
mod denials;
mod door;
mod leaks;
mod overlay;
mod probes;
mod recycling;
mod second_ways;
mod sessions;
mod shared_tiers;
mod support;
mod tier_floor;
mod toolchains;
mod unprivileged;
mod workloads;
