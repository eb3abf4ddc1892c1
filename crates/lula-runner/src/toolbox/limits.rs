//! How much the file tools take and give. `GET /v1/capabilities` tells these numbers.

use std::time::Duration;

/// Largest request, in bytes.
pub const REQUEST: usize = 12 << 20;
/// Largest reply, in bytes.
pub const REPLY: usize = 16 << 20;
/// Longest diff of a plan, in bytes.
pub const DIFF: usize = 1 << 20;
/// Most bytes of files that one change replaces.
pub const REPLACED: usize = 8 << 20;
/// Largest file that is read or written, in bytes.
pub const FILE: u64 = 8 << 20;
/// Largest picture that is returned, in bytes: what every provider takes.
pub const PICTURE: usize = 1 << 20;
/// Most pixels of a side of it.
pub const PICTURE_SIDE: u32 = 8000;
/// Most text one call returns, in bytes.
pub const TEXT: usize = 256 << 10;
/// Largest patch, in bytes.
pub const PATCH: usize = 4 << 20;
/// Most text of changed places that an edit answers with, in bytes.
pub const PLACES: usize = 12 << 10;
/// Most lines of context around a line that is found.
pub const CONTEXT: u32 = 20;
/// Most files one patch changes.
pub const PATCH_FILES: usize = 200;
/// Most entries one list returns.
pub const ENTRIES: usize = 5_000;
/// Most names one walk looks at.
pub const VISITED: usize = 500_000;
/// Deepest directory a walk enters.
pub const DEPTH: usize = 64;
/// Most lines one search returns.
pub const MATCHES: usize = 500;
/// Longest line a search returns, in bytes.
pub const MATCH_LINE: usize = 400;
/// Longest pattern or glob, in bytes.
pub const PATTERN: usize = 4096;
/// Longest path, in bytes.
pub const PATH: usize = 4096;
/// Longest walk or search.
pub const TIME: Duration = Duration::from_secs(10);
