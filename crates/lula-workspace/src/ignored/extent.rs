//! How much of a checkout git ignores, for a person to see.

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::tree::node::Stat;
use crate::tree::{RootedTree, beneath, disk_usage_within, os};

/// Most files whose size is looked at: a person waits for it.
const MOST: u64 = 50_000;
/// Most paths that are named.
const NAMED: usize = 20;

/// What git ignores in a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IgnoredExtent {
    /// The files and directories that it ignores as a whole, the largest first; not all of many.
    pub paths: Vec<String>,
    /// How many bytes they take on the disk.
    pub bytes: u64,
    /// Whether there are more files than were counted.
    pub more: bool,
    /// Those that are not shown, because they are known to hold secrets; not all of many.
    pub hidden: Vec<String>,
}

impl IgnoredExtent {
    pub(super) fn of(checkout: &RootedTree, ignored: &[Vec<u8>], hidden: &[Vec<u8>]) -> Self {
        let mut left = MOST;
        let mut sized: Vec<(u64, String)> = ignored
            .iter()
            .filter(|path| !hidden.contains(path))
            .map(|path| (size(checkout, path, &mut left), text(path)))
            .collect();
        sized.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        Self {
            bytes: sized.iter().map(|(bytes, _)| bytes).sum(),
            more: left == 0,
            paths: sized
                .into_iter()
                .map(|(_, path)| path)
                .take(NAMED)
                .collect(),
            hidden: hidden.iter().map(|path| text(path)).take(NAMED).collect(),
        }
    }
}

fn size(checkout: &RootedTree, path: &[u8], left: &mut u64) -> u64 {
    match path.strip_suffix(b"/") {
        Some(folder) => beneath(&checkout.top, os(folder), OFlags::DIRECTORY)
            .map_or(0, |folder| disk_usage_within(&folder, left)),
        None => match Stat::maybe(&checkout.top, os(path)) {
            Ok(Some(stat)) => stat.blocks * 512,
            _ => 0,
        },
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
