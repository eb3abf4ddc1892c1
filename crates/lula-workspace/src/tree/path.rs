//! Paths inside a workspace: relative, plain, and in any bytes the file system takes.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest path taken, as the kernel's own limit.
const MAX_LEN: usize = 4096;

/// A path below the top of a workspace. It has no empty, `.` or `..` part and no leading slash, so
/// it names something inside whatever it is joined to.
///
/// Written as text it is the path itself, with `\` doubled and bytes that are not UTF-8 as `\xNN`:
/// every path has one spelling and every spelling one path.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WorkspacePath(Vec<u8>);

/// Why something is not a path inside a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path inside the workspace")]
pub struct InvalidWorkspacePath(String);

impl WorkspacePath {
    /// A path from its bytes, if each part is a plain name of at most 255 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidWorkspacePath> {
        let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && part.len() <= 255;
        if bytes.len() <= MAX_LEN && !bytes.contains(&0) && bytes.split(|b| *b == b'/').all(plain) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(InvalidWorkspacePath(
                String::from_utf8_lossy(bytes).chars().take(200).collect(),
            ))
        }
    }

    /// A path as a person or a tool gives it.
    pub fn from_path(path: &Path) -> Result<Self, InvalidWorkspacePath> {
        Self::from_bytes(path.as_os_str().as_bytes())
    }

    pub(crate) fn top(name: &[u8]) -> Result<Self, InvalidWorkspacePath> {
        Self::from_bytes(name)
    }

    /// The entry of that name in this directory.
    pub(crate) fn child(&self, name: &[u8]) -> Result<Self, InvalidWorkspacePath> {
        let mut bytes = self.0.clone();
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self::from_bytes(&bytes)
    }

    /// As the file system spells it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For calls that take a path.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The same below another directory.
    pub fn below(&self, directory: &Path) -> PathBuf {
        directory.join(self.as_os_str())
    }

    /// Its parts, the outermost first.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    pub fn name(&self) -> &[u8] {
        self.parts().next_back().unwrap_or_default()
    }

    /// The directory it is in, unless that is the top.
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..cut].to_vec()))
    }

    /// Whether it is that path or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) && matches!(self.0.get(other.0.len()), None | Some(b'/'))
    }

    /// Whether it lies below that path.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self != other && self.is_within(other)
    }
}

/// Part by part: a directory comes right before what is in it.
impl Ord for WorkspacePath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(other.parts())
    }
}

impl PartialOrd for WorkspacePath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Bytes as text that can be read back: see [`WorkspacePath`].
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The bytes of a text made by [`escape`]; `None` for any other text.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = rest.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[3..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    // One spelling only: what escapes differently was not written by us.
    (escape(&bytes) == text).then_some(bytes)
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(&self.0))
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&escape(&self.0), f)
    }
}

impl FromStr for WorkspacePath {
    type Err = InvalidWorkspacePath;
    fn from_str(text: &str) -> Result<Self, InvalidWorkspacePath> {
        let bytes =
            unescape(text).ok_or_else(|| InvalidWorkspacePath(text.chars().take(200).collect()))?;
        Self::from_bytes(&bytes)
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_outside_can_be_named() {
        for bad in ["", "/etc", "../x", "a/../b", "a//b", "./a", "a/", "a\0b"] {
            assert!(
                WorkspacePath::from_bytes(bad.as_bytes()).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_directory_comes_before_what_is_in_it_and_after_nothing_else() {
        let mut paths: Vec<WorkspacePath> = ["a.b", "a/c", "a", "a b"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        paths.sort();
        let texts: Vec<_> = paths.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["a", "a/c", "a b", "a.b"]);
        assert!(paths[1].is_within(&paths[0]) && !paths[3].is_within(&paths[0]));
    }

    proptest! {
        #[test]
        fn every_name_is_written_in_one_way_and_read_back(bytes: Vec<u8>) {
            prop_assert_eq!(unescape(&escape(&bytes)), Some(bytes));
        }

        #[test]
        fn a_text_is_either_refused_or_the_only_spelling(text in r"[a-z\\x0-9/.]{0,12}") {
            if let Ok(path) = text.parse::<WorkspacePath>() {
                prop_assert_eq!(path.to_string(), text);
            }
        }
    }
}
