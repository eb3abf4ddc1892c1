//! Lines with short hashes. The hash of a line covers all text above it too, so that two equal
//! lines differ, and a range whose ends both hold is the range that was seen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::lines::TextLines;

/// One line as a model names it: its number from 1, and its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineAnchor {
    /// The line's number, from 1.
    pub line: usize,
    /// Hash of the line's text, as four hexadecimal digits.
    pub hash: String,
}

/// The text is no anchor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected NUMBER:HASH")]
pub struct InvalidAnchor;

impl FromStr for LineAnchor {
    type Err = InvalidAnchor;
    fn from_str(text: &str) -> Result<Self, InvalidAnchor> {
        let (line, hash) = text.split_once(':').ok_or(InvalidAnchor)?;
        let line = line.trim().parse().map_err(|_| InvalidAnchor)?;
        let hash = hash.trim().to_ascii_lowercase();
        if line == 0 || hash.len() != 4 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(InvalidAnchor);
        }
        Ok(Self { line, hash })
    }
}

impl fmt::Display for LineAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.hash)
    }
}

/// The hash of every line.
pub fn hashes(text: &str) -> Vec<String> {
    let mut so_far = blake3::Hasher::new();
    TextLines::of(text)
        .texts()
        .map(|line| {
            so_far.update(line.trim_end().as_bytes());
            so_far.update(b"\n");
            so_far.finalize().to_hex()[..4].to_owned()
        })
        .collect()
}

/// The file as a model is shown it: `NUMBER:HASH|line`.
pub fn show(text: &str) -> String {
    TextLines::of(text)
        .texts()
        .zip(hashes(text))
        .enumerate()
        .map(|(index, (line, hash))| format!("{}:{hash}|{line}\n", index + 1))
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_have_different_hashes_and_only_text_above_matters() {
        let before = hashes("a\n}\nb\n}\n");
        assert_ne!(before[1], before[3]);
        let after = hashes("a\n}\nb\n}\nmore\n");
        assert_eq!(before[..4], after[..4]);
        assert_ne!(hashes("x\n}\n")[1], before[1]);
    }

    #[test]
    fn anchors_parse_back_and_nonsense_does_not() {
        let anchor: LineAnchor = "12:A3f4".parse().unwrap();
        assert_eq!(anchor.to_string(), "12:a3f4");
        for bad in ["", "12", "0:aaaa", "12:xyz1", "12:abc", "x:abcd"] {
            assert!(bad.parse::<LineAnchor>().is_err(), "{bad}");
        }
    }
}
