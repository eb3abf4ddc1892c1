//! Path patterns, matched against paths that cannot pretend to be other paths.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of patterns such as `src/**` or `*.lock`.
#[derive(Debug, Clone)]
pub struct PathGlobs {
    patterns: Vec<String>,
    set: GlobSet,
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a path pattern: {reason}")]
pub struct InvalidGlob {
    pattern: String,
    reason: String,
}

impl PathGlobs {
    /// Reads patterns. `*` stays within a directory, `**` does not; letters match in both cases,
    /// because some file systems do not tell them apart.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, InvalidGlob> {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let invalid = |reason: String| InvalidGlob {
                pattern: pattern.to_owned(),
                reason,
            };
            let plain = pattern.strip_prefix("./").unwrap_or(pattern);
            if plain.is_empty() || plain.starts_with('/') || plain.split('/').any(|p| p == "..") {
                return Err(invalid("it must stay inside the workspace".to_owned()));
            }
            // `dir/**` and `dir/` speak about the directory itself too.
            let directory = plain
                .strip_suffix("/**")
                .or_else(|| plain.strip_suffix('/'));
            let below = directory.map(|directory| format!("{directory}/**"));
            for text in [
                Some(plain.trim_end_matches('/')),
                directory,
                below.as_deref(),
            ]
            .into_iter()
            .flatten()
            {
                let glob = GlobBuilder::new(text)
                    .literal_separator(true)
                    .case_insensitive(true)
                    .build()
                    .map_err(|error| invalid(error.kind().to_string()))?;
                builder.add(glob);
            }
        }
        let set = builder.build().map_err(|error| InvalidGlob {
            pattern: String::new(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            patterns: patterns.iter().map(|p| p.as_ref().to_owned()).collect(),
            set,
        })
    }

    /// Whether a path inside the workspace matches. A path that leaves it matches nothing.
    pub fn matches(&self, path: &str) -> bool {
        inside(path).is_some_and(|path| self.set.is_match(path))
    }

    /// The patterns as they were written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

/// The plain form of a path below the workspace: no `.`, no `..`, no doubled slash. `None` for a
/// path that leaves it.
pub fn inside(path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_detour_is_the_place_it_leads_to() {
        let git = PathGlobs::new(&[".git/**"]).unwrap();
        for path in [
            ".git/config",
            "py/../.git/config",
            "./.git//hooks/pre-commit",
            ".git",
            ".GIT/config",
        ] {
            assert!(git.matches(path), "{path}");
        }
        for path in [".gitignore", "src/.git", "../.git/config", "/x/.git/config"] {
            assert!(!git.matches(path), "{path}");
        }
    }

    #[test]
    fn a_star_stays_in_its_directory() {
        let globs = PathGlobs::new(&["src/*.rs", "docs/"]).unwrap();
        assert!(globs.matches("src/lib.rs"));
        assert!(!globs.matches("src/a/b.rs"));
        assert!(globs.matches("docs/a/b.md"));
    }

    #[test]
    fn a_pattern_outside_the_workspace_is_refused() {
        for bad in ["", "/etc/**", "../x", "a/../../b", "[", "a{b"] {
            assert!(PathGlobs::new(&[bad]).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_path_stays_as_it_is(path in "[a-z.]{1,5}(/[a-z]{1,5}){0,3}") {
            prop_assume!(!path.split('/').any(|part| part == "." || part == ".."));
            prop_assert_eq!(inside(&path), Some(path.clone()));
        }

        #[test]
        fn no_path_panics(path in ".{0,60}") {
            if let Some(plain) = inside(&path) {
                prop_assert!(!plain.split('/').any(|part| part == ".."));
            }
        }
    }
}
