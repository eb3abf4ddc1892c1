//! Absolute paths without tricks, and names of environment variables.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::amount::{InvalidPolicyAmount, serde_as_text};

/// An absolute path in its one normal spelling: no `.`, no `..`, no doubled or trailing slash, no
/// control character. It names a place; whether something is there is not its business.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsolutePath(String);

impl AbsolutePath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path for file operations.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Whether `other` is this path or lies below it.
    pub fn covers(&self, other: &Self) -> bool {
        self.0 == "/"
            || other
                .0
                .strip_prefix(&self.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for AbsolutePath {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        const EXPECTED: &str = "an absolute path: start with / and use no .. and no control \
                                characters (~ and variables are not expanded)";
        let invalid = || InvalidPolicyAmount::new(given, EXPECTED);
        if !given.starts_with('/') || given.len() > 4096 || given.chars().any(char::is_control) {
            return Err(invalid());
        }
        let mut normal = String::with_capacity(given.len());
        for part in given.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(invalid()),
                name => {
                    normal.push('/');
                    normal.push_str(name);
                }
            }
        }
        if normal.is_empty() {
            normal.push('/');
        }
        Ok(Self(normal))
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The name of an environment variable: a letter or `_`, then letters, digits and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableName(String);

impl VariableName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        const EXPECTED: &str = "a variable name: use letters, digits and _, not starting with a \
                                digit";
        let start = given
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit());
        let plain = given
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if start && plain && given.len() <= 256 {
            Ok(Self(given.to_owned()))
        } else {
            Err(InvalidPolicyAmount::new(given, EXPECTED))
        }
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(AbsolutePath, VariableName);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> AbsolutePath {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_has_one_spelling() {
        assert_eq!(path("//opt/./tool//").as_str(), "/opt/tool");
        assert_eq!(path("/").as_str(), "/");
    }

    #[test]
    fn tricks_are_refused() {
        for wrong in [
            "",
            "opt",
            "~/x",
            "/opt/../etc",
            "/..",
            "/a\0b",
            "/a\nb",
            "./a",
        ] {
            assert!(wrong.parse::<AbsolutePath>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn covering_goes_by_component_not_by_letters() {
        assert!(path("/opt").covers(&path("/opt/tool")));
        assert!(path("/opt").covers(&path("/opt")));
        assert!(path("/").covers(&path("/opt")));
        assert!(!path("/opt").covers(&path("/optional")));
        assert!(!path("/opt/tool").covers(&path("/opt")));
    }

    #[test]
    fn variable_names_are_plain() {
        assert!("LC_ALL".parse::<VariableName>().is_ok());
        for wrong in ["", "1A", "A=B", "A B", "Ä", "A\0"] {
            assert!(wrong.parse::<VariableName>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_parses_is_normal_and_parses_to_itself(text in "/[a-z./~$\\x00-\\x20]{0,40}") {
            if let Ok(parsed) = text.parse::<AbsolutePath>() {
                prop_assert!(!parsed.as_str().contains("//"));
                prop_assert!(!parsed.as_str().split('/').any(|part| part == ".."));
                prop_assert_eq!(parsed.as_str().parse::<AbsolutePath>(), Ok(parsed.clone()));
            }
        }
    }
}
