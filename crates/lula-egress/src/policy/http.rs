//! Methods and paths, as rules name them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::domain::spelled;
use super::{InvalidEgress, RequestDetail};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most bytes of a method.
const LONGEST_METHOD: usize = 24;
/// Most bytes of a pattern of paths.
const LONGEST_GLOB: usize = 1024;
/// Most methods, and most paths, of a scope.
const MOST_DETAILS: usize = 64;

/// Which requests a rule or a credential is about: those with one of the methods and one of the paths. An
/// empty list is about all. Rules and credentials are judged by this alone, so that neither can be laxer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct RequestScope {
    methods: BTreeSet<MethodName>,
    paths: BTreeSet<PathGlob>,
}

impl RequestScope {
    /// `what` and `name` say whose scope it is, where it is refused.
    pub(super) fn new(
        what: &'static str,
        name: &str,
        methods: BTreeSet<MethodName>,
        paths: BTreeSet<PathGlob>,
    ) -> Result<Self, InvalidEgress> {
        if methods.len() > MOST_DETAILS || paths.len() > MOST_DETAILS {
            return Err(InvalidEgress::new(
                what,
                name,
                "at most 64 methods and 64 paths: write another one",
            ));
        }
        Ok(Self { methods, paths })
    }

    /// One method and path alone.
    pub(super) fn only(method: MethodName, path: PathGlob) -> Self {
        Self {
            methods: BTreeSet::from([method]),
            paths: BTreeSet::from([path]),
        }
    }

    /// Whether it is about every request there is.
    pub(super) fn is_everything(&self) -> bool {
        self.methods.is_empty() && self.paths.is_empty()
    }

    pub(super) fn allows(&self, detail: RequestDetail<'_>) -> bool {
        let method = |method: &MethodName| method.as_str() == detail.method;
        (self.methods.is_empty() || self.methods.iter().any(method))
            && (self.paths.is_empty() || self.paths.iter().any(|path| path.matches(detail.path)))
    }

    pub(super) fn methods(&self) -> &BTreeSet<MethodName> {
        &self.methods
    }

    pub(super) fn paths(&self) -> &BTreeSet<PathGlob> {
        &self.paths
    }

    pub(super) fn into_parts(self) -> (BTreeSet<MethodName>, BTreeSet<PathGlob>) {
        (self.methods, self.paths)
    }
}

/// A method of HTTP, in capitals. `CONNECT` is none that a rule can allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodName(String);

impl MethodName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MethodName {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let fine = !given.is_empty()
            && given.len() <= LONGEST_METHOD
            && given
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        if !fine {
            return Err(InvalidEgress::new(
                "method",
                given,
                "write it in capitals, as in GET",
            ));
        }
        if given == "CONNECT" {
            return Err(InvalidEgress::new(
                "method",
                given,
                "it would reach any host behind the named one",
            ));
        }
        Ok(Self(given.to_owned()))
    }
}

/// A pattern of paths. `*` stands for anything within a segment, `**` alone in a segment for any number
/// of segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathGlob(String);

impl PathGlob {
    /// Whether the path of a request, without its query, is among those of the pattern. A path that a
    /// server could read as another one (dot segments, an escaped slash, backslashes) is only below `/**`.
    pub fn matches(&self, path: &str) -> bool {
        if self.0 == "/**" {
            return path.starts_with('/');
        }
        if !is_plain(path) {
            return false;
        }
        let pattern: Vec<&str> = self.0.split('/').skip(1).collect();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        segments_match(&pattern, &segments)
    }
}

/// Whether every server reads this path in the same way.
fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    path.starts_with('/')
        && !path.contains('\\')
        && !["%2f", "%5c", "%2e", "%00", "%25", ";"]
            .iter()
            .any(|bad| lower.contains(bad))
        && path
            .split('/')
            .all(|segment| segment != "." && segment != "..")
        && !path.contains("//")
}

/// Both lists from the left, remembering the last `**` to come back to: time is bounded by the product
/// of the lengths.
fn segments_match(pattern: &[&str], segments: &[&str]) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut resume = None;
    while here < segments.len() {
        match pattern.get(at) {
            Some(&"**") => {
                resume = Some((at, here));
                at += 1;
            }
            Some(one) if segment_matches(one.as_bytes(), segments[here].as_bytes()) => {
                at += 1;
                here += 1;
            }
            _ => match resume {
                Some((star, taken)) => {
                    resume = Some((star, taken + 1));
                    at = star + 1;
                    here = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == "**")
}

fn segment_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut resume = None;
    while here < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                resume = Some((at, here));
                at += 1;
            }
            Some(byte) if *byte == text[here] => {
                at += 1;
                here += 1;
            }
            _ => match resume {
                Some((star, taken)) => {
                    resume = Some((star, taken + 1));
                    at = star + 1;
                    here = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

impl FromStr for PathGlob {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let invalid = |why: &str| InvalidEgress::new("path", given, why);
        if !given.starts_with('/') || given.len() > LONGEST_GLOB {
            return Err(invalid(
                "a path begins with / and has at most 1024 characters",
            ));
        }
        if !given.bytes().all(|byte| byte.is_ascii_graphic()) || given.contains(['?', '#', ',']) {
            return Err(invalid(
                "a path has visible ASCII characters and no ?, # or comma: rules do not look at queries",
            ));
        }
        if !is_plain(given) {
            return Err(invalid(
                "dot segments, //, ;, \\ and escaped slashes match nothing: leave them out",
            ));
        }
        if given
            .split('/')
            .any(|segment| segment.contains("**") && segment != "**")
        {
            return Err(invalid("** stands alone between slashes, as in /simple/**"));
        }
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

spelled!(MethodName, PathGlob);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(glob: &str, path: &str) -> bool {
        glob.parse::<PathGlob>().unwrap().matches(path)
    }

    #[test]
    fn a_star_stays_within_its_segment() {
        assert!(matches("/repos/*/issues", "/repos/lula/issues"));
        assert!(!matches("/repos/*/issues", "/repos/a/b/issues"));
        assert!(matches("/a*c/x.*", "/abbc/x.json"));
        assert!(!matches("/a*c", "/ab"));
        assert!(matches("/", "/"));
    }

    #[test]
    fn two_stars_are_any_number_of_segments() {
        for path in ["/simple", "/simple/", "/simple/pip/", "/simple/a/b/c"] {
            assert!(matches("/simple/**", path), "{path}");
        }
        assert!(!matches("/simple/**", "/simpler"));
        assert!(matches("/**/info/refs", "/a/b.git/info/refs"));
        assert!(!matches("/**/info/refs", "/a/info/refs/x"));
    }

    #[test]
    fn a_path_with_two_readings_matches_nothing() {
        for path in [
            "/public/../private",
            "/public/./x",
            "/public/%2e%2e/private",
            "/public/a%2Fb",
            "/public/a\\b",
            "/public//private",
            "/public/%252e%252e/x",
            "/public/..;/private",
            "public",
        ] {
            assert!(!matches("/public/**", path), "{path}");
        }
    }

    #[test]
    fn every_path_is_below_the_root() {
        assert!(matches("/**", "/@scope%2fpackage"));
        assert!(!matches("/**", "*"));
    }

    #[test]
    fn connect_is_no_method_that_a_rule_allows() {
        assert!("CONNECT".parse::<MethodName>().is_err());
        assert!("get".parse::<MethodName>().is_err());
        assert!("PROPFIND".parse::<MethodName>().is_ok());
    }

    proptest! {
        #[test]
        fn a_plain_path_matches_itself(path in "(/[a-z0-9._-]{1,6}x){1,5}") {
            prop_assert!(matches(&path, &path));
            prop_assert!(matches("/**", &path));
        }

        #[test]
        fn stars_end(glob in "(/(\\*\\*|[a*]{0,8})){1,8}", path in "(/a{0,12}){1,12}") {
            if let Ok(glob) = glob.parse::<PathGlob>() {
                let _ = glob.matches(&path);
            }
        }
    }
}
