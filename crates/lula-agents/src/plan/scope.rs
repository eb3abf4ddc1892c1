//! What a step may write: path patterns with `*`, `?` and `**`, and nothing else that is special.

use serde::{Deserialize, Serialize};

/// Path patterns, relative to the top of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathScope(Vec<String>);

impl PathScope {
    /// Reads patterns. `dir/` speaks of everything below it.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, String> {
        let mut read = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let pattern = pattern.as_ref().trim();
            let plain = pattern.strip_prefix("./").unwrap_or(pattern);
            let below = plain.strip_suffix('/').map(|dir| format!("{dir}/**"));
            let plain = below.unwrap_or_else(|| plain.to_owned());
            let odd = |part: &str| matches!(part, "" | "." | ".." | ".git");
            if plain.contains('\0') || plain.split('/').any(odd) {
                return Err(format!("{pattern:?} does not stay inside the repository"));
            }
            read.push(plain);
        }
        read.sort();
        read.dedup();
        Ok(Self(read))
    }

    /// Every path of the repository.
    pub fn everything() -> Self {
        Self(vec!["**".to_owned()])
    }

    /// Whether nothing may be written.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Everything that one or the other allows.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.iter().cloned());
        all.sort();
        all.dedup();
        Self(all)
    }

    /// Whether everything a pattern speaks of may be written. Says no rather than yes.
    pub fn covers(&self, pattern: &str) -> bool {
        self.0.iter().any(|own| {
            own == "**"
                || own == pattern
                || own
                    .strip_suffix("**")
                    .is_some_and(|below| !below.contains(['*', '?']) && pattern.starts_with(below))
        })
    }

    /// Whether a path may be written.
    pub fn holds(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        if path.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return false;
        }
        self.0.iter().any(|pattern| {
            let pattern: Vec<&str> = pattern.split('/').collect();
            meet(&pattern, &path, &|pattern, name| same(pattern, name, false))
        })
    }

    /// Those of its patterns that meet the other.
    pub fn meeting(&self, other: &Self) -> Vec<&str> {
        let own = self.0.iter().filter(|own| {
            let alone = Self(vec![(*own).clone()]);
            alone.meets(other)
        });
        own.map(String::as_str).collect()
    }

    /// The files that both name, where they have nothing else in common: a file is named without a
    /// pattern, and in the same letters.
    pub fn files_in_common(&self, other: &Self) -> Option<Vec<&str>> {
        let mut files = Vec::new();
        for own in self.meeting(other) {
            let alone = Self(vec![own.to_owned()]);
            let theirs = other.meeting(&alone);
            if own.contains(['*', '?']) || theirs != [own] {
                return None;
            }
            files.push(own);
        }
        Some(files)
    }

    /// Whether some path may be written under both. Says yes rather than no: letters count as the
    /// same in both cases, because some file systems do not tell them apart.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|one| {
            let one: Vec<&str> = one.split('/').collect();
            other.0.iter().any(|two| {
                let two: Vec<&str> = two.split('/').collect();
                meet(&one, &two, &|a, b| {
                    same(&a.to_lowercase(), &b.to_lowercase(), true)
                })
            })
        })
    }
}

/// Whether two lists of names and patterns can be the same list, where `**` is any number of names.
/// A table instead of recursion: patterns come from models.
fn meet(one: &[&str], two: &[&str], same: &dyn Fn(&str, &str) -> bool) -> bool {
    table(one.len(), two.len(), |rest, i, j| {
        let (a, b) = (one.get(i).copied(), two.get(j).copied());
        match (a, b) {
            (None, None) => true,
            (Some("**"), Some(_)) | (Some(_), Some("**")) if rest(i + 1, j) || rest(i, j + 1) => {
                true
            }
            (Some("**"), None) => rest(i + 1, j),
            (None, Some("**")) => rest(i, j + 1),
            (Some(a), Some(b)) => same(a, b) && rest(i + 1, j + 1),
            _ => false,
        }
    })
}

/// Whether two names can be the same. The stars of the second count only where it is a pattern too.
fn same(one: &str, two: &str, both: bool) -> bool {
    let one: Vec<char> = one.chars().collect();
    let two: Vec<char> = two.chars().collect();
    table(one.len(), two.len(), |rest, i, j| {
        let (a, b) = (one.get(i), two.get(j));
        let star = |c: Option<&char>| c == Some(&'*');
        if star(a) && (rest(i + 1, j) || (b.is_some() && rest(i, j + 1))) {
            return true;
        }
        if both && star(b) && (rest(i, j + 1) || (a.is_some() && rest(i + 1, j))) {
            return true;
        }
        match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                let alike = a == b || *a == '?' || (both && *b == '?');
                alike && rest(i + 1, j + 1)
            }
            _ => false,
        }
    })
}

/// Fills a table from its end: whether what is left of both from `(i, j)` fits.
fn table(
    rows: usize,
    columns: usize,
    fits: impl Fn(&dyn Fn(usize, usize) -> bool, usize, usize) -> bool,
) -> bool {
    let width = columns + 1;
    let mut known = vec![false; (rows + 1) * width];
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            let rest = |i: usize, j: usize| {
                i <= rows && j <= columns && known.get(i * width + j).copied().unwrap_or(false)
            };
            let here = fits(&rest, i, j);
            known[i * width + j] = here;
        }
    }
    known[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scope(patterns: &[&str]) -> PathScope {
        PathScope::new(patterns).unwrap()
    }

    #[test]
    fn patterns_hold_what_they_say() {
        let src = scope(&["src/", "docs/*.md", "a?.py"]);
        for path in ["src/a.rs", "src/deep/b.rs", "docs/x.md", "ab.py"] {
            assert!(src.holds(path), "{path}");
        }
        for path in [
            "srcs/a.rs",
            "docs/deep/x.md",
            "Src/a.rs",
            "src/../etc",
            "a.py",
            "/src/a",
        ] {
            assert!(!src.holds(path), "{path}");
        }
        assert!(PathScope::everything().holds("any/thing"));
        assert!(!PathScope::default().holds("x"));
        // A bracket is a letter like any other.
        assert!(scope(&["pages/[id].tsx"]).holds("pages/[id].tsx"));
    }

    #[test]
    fn a_pattern_that_leaves_the_repository_is_refused() {
        for bad in ["../x", "/etc", "a//b", "", ".git/config", "a/./b"] {
            assert!(PathScope::new(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_meet_where_one_path_fits_both() {
        for (one, two) in [
            ("src/**", "src/a.rs"),
            ("**/x.py", "a/**"),
            ("src/*.py", "src/t*"),
            ("**", "README.md"),
            ("Src/a", "src/A"),
            ("a*b", "*ab*"),
        ] {
            assert!(scope(&[one]).meets(&scope(&[two])), "{one} {two}");
            assert!(scope(&[two]).meets(&scope(&[one])), "{two} {one}");
        }
        for (one, two) in [("src/**", "docs/**"), ("*.py", "a/*.py"), ("a?", "abc")] {
            assert!(!scope(&[one]).meets(&scope(&[two])), "{one} {two}");
        }
    }

    #[test]
    fn only_files_that_both_name_can_be_shared() {
        let one = scope(&["src/a.py", "cli.py"]);
        assert_eq!(
            one.files_in_common(&scope(&["cli.py", "b.py"])),
            Some(vec!["cli.py"])
        );
        assert_eq!(one.files_in_common(&scope(&["docs/"])), Some(Vec::new()));
        assert_eq!(one.files_in_common(&scope(&["src/"])), None);
        assert_eq!(one.files_in_common(&scope(&["CLI.py"])), None);
        assert_eq!(scope(&["*.py"]).files_in_common(&one), None);
    }

    proptest! {
        // Sharing is mutual, and two that share nothing do not meet.
        #[test]
        fn what_is_shared_is_shared_by_both(
            one in proptest::collection::vec("([aA*]{1,2}|\\*\\*)(/[ab]{1,2}){0,1}", 1..4),
            two in proptest::collection::vec("([aA*]{1,2}|\\*\\*)(/[ab]{1,2}){0,1}", 1..4),
        ) {
            let (one, two) = (PathScope::new(&one).unwrap(), PathScope::new(&two).unwrap());
            let (here, there) = (one.files_in_common(&two), two.files_in_common(&one));
            prop_assert_eq!(&here, &there);
            if here.is_some_and(|files| files.is_empty()) {
                prop_assert!(!one.meets(&two));
            }
        }

        // A path that both hold proves that they meet.
        #[test]
        fn what_both_hold_they_share(
            one in "([ab*?]{1,3}|\\*\\*)(/([ab*?]{1,3}|\\*\\*)){0,3}",
            two in "([ab*?]{1,3}|\\*\\*)(/([ab*?]{1,3}|\\*\\*)){0,3}",
            path in "[ab]{1,3}(/[ab]{1,3}){0,3}",
        ) {
            let (one, two) = (scope(&[&one]), scope(&[&two]));
            if one.holds(&path) && two.holds(&path) {
                prop_assert!(one.meets(&two));
                prop_assert!(two.meets(&one));
            }
        }
    }
}
