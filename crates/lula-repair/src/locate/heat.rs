//! How suspicious each line is.
//!
//! Ochiai over the lines that each test executed, warmed by stack traces and recent changes, and
//! carried over to lines that no tracer sees run inside a test: heads of functions, constants that
//! suspicious code names, and branches that should have been taken.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::RecentChange;
use crate::syntax::{ParsedSource, is_function, walk};

/// The lines of the project that one test executed.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinesOfTest {
    pub(crate) failed: bool,
    pub(crate) lines: BTreeMap<String, Vec<usize>>,
}

/// Suspicion by file and line, from zero to one.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heat {
    lines: HashMap<String, BTreeMap<usize, f64>>,
}

/// Share of a function's suspicion that its lines get which did not run.
const NOT_RUN: f64 = 0.25;
/// Share that the head of a function gets.
const HEAD: f64 = 0.6;
/// Share that a constant gets from the code that names it.
const NAMED: f64 = 0.4;
/// Suspicion of a function that a failing test names, where no lines are known.
const NAMED_BY_TEST: f64 = 0.6;
/// Suspicion of a file whose name is that of a failing test's file, where no lines are known.
const SAME_STEM: f64 = 0.3;

/// What a file is called without its endings and what marks tests: `cart` of `test/cart.test.js`.
fn stem(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?.split('.').next()?;
    let name = name.strip_prefix("test_").unwrap_or(name);
    let name = name
        .strip_suffix("_test")
        .or_else(|| name.strip_suffix("_spec"))
        .unwrap_or(name);
    (path.contains('.') && !matches!(name, "" | "index" | "test" | "mod" | "main")).then_some(name)
}

impl Heat {
    pub(crate) fn at(&self, path: &str, line: usize) -> f64 {
        self.lines
            .get(path)
            .and_then(|lines| lines.get(&line))
            .copied()
            .unwrap_or(0.0)
    }

    pub(crate) fn any(&self, path: &str, first: usize, last: usize) -> bool {
        self.lines
            .get(path)
            .is_some_and(|lines| lines.range(first..=last).any(|(_, heat)| *heat > 0.0))
    }

    /// The hottest lines, hottest first.
    pub(crate) fn hottest(&self, count: usize) -> Vec<(String, usize, f64)> {
        let mut all: Vec<_> = self
            .lines
            .iter()
            .flat_map(|(path, lines)| {
                lines
                    .iter()
                    .map(|(line, heat)| (path.clone(), *line, *heat))
            })
            .collect();
        all.sort_by(|a, b| {
            b.2.total_cmp(&a.2)
                .then_with(|| (&a.0, a.1).cmp(&(&b.0, b.1)))
        });
        all.truncate(count);
        all
    }

    fn warm(&mut self, path: &str, line: usize, heat: f64) {
        let lines = self.lines.entry(path.to_owned()).or_default();
        let old = lines.entry(line).or_insert(0.0);
        *old = old.max(heat);
    }

    /// Ochiai: executed by the failing, not by the passing.
    pub(crate) fn ochiai(tests: &[LinesOfTest], sources: &[ParsedSource]) -> Self {
        let wanted: HashSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        let failing = tests.iter().filter(|test| test.failed).count();
        let mut counts: HashMap<(&str, usize), (usize, usize)> = HashMap::new();
        for test in tests {
            for (path, lines) in test
                .lines
                .iter()
                .filter(|(path, _)| wanted.contains(path.as_str()))
            {
                for line in lines {
                    let count = counts.entry((path, *line)).or_default();
                    if test.failed {
                        count.0 += 1;
                    } else {
                        count.1 += 1;
                    }
                }
            }
        }
        let mut heat = Self::default();
        for ((path, line), (failed, passed)) in counts {
            if failed > 0 {
                #[allow(clippy::cast_precision_loss)]
                let score = failed as f64 / ((failing * (failed + passed)) as f64).sqrt();
                heat.warm(path, line, score);
            }
        }
        heat
    }

    /// With nothing to go by, every line of these files is as likely as the next.
    pub(crate) fn even(sources: &[ParsedSource], level: f64) -> Self {
        let mut heat = Self::default();
        for source in sources {
            for line in 1..=source.text.lines().count() {
                heat.warm(&source.path, line, level);
            }
        }
        heat
    }

    /// Warms functions that failing tests name, and files that share a test file's name. Test authors
    /// name what they test, which is worth the most where no lines are known.
    pub(crate) fn named(&mut self, texts: &[String], sources: &[ParsedSource]) {
        let words: HashSet<&str> = texts
            .iter()
            .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$'))
            .filter(|word| word.len() >= 3)
            .collect();
        let stems: HashSet<&str> = texts
            .iter()
            .filter_map(|text| stem(text.split(" > ").next()?))
            .collect();
        for source in sources {
            if stem(&source.path).is_some_and(|own| stems.contains(own)) {
                for line in 1..=source.text.lines().count() {
                    self.warm(&source.path, line, SAME_STEM);
                }
            }
            for node in walk(source.root())
                .into_iter()
                .filter(|node| is_function(*node))
            {
                let name = node.child_by_field_name("name").or_else(|| {
                    let parent = node.parent()?;
                    ["name", "key", "left", "property"]
                        .iter()
                        .find_map(|field| parent.child_by_field_name(field))
                });
                let Some(name) = name.map(|name| source.of(name)) else {
                    continue;
                };
                let last = name.rsplit('.').next().unwrap_or(name);
                if words.contains(last) {
                    for line in node.start_position().row + 1..=node.end_position().row + 1 {
                        self.warm(&source.path, line, NAMED_BY_TEST);
                    }
                }
            }
        }
    }

    /// Warms what stack traces name; the last frame the most.
    pub(crate) fn trace(&mut self, frames: &[(&str, usize)], innermost_last: bool) {
        let count = frames.len();
        for (index, (path, line)) in frames.iter().enumerate() {
            let distance = if innermost_last {
                count - 1 - index
            } else {
                index
            };
            #[allow(clippy::cast_precision_loss)]
            let factor = 1.0 + 0.5 / (1.0 + distance as f64);
            let now = self.at(path, *line).max(0.35);
            self.warm(path, *line, (now * factor).min(1.0));
        }
    }

    /// Warms what changed lately.
    pub(crate) fn recent(&mut self, changes: &[RecentChange]) {
        for change in changes {
            if let Some(lines) = self.lines.get_mut(&change.path) {
                for (_, heat) in lines.range_mut(change.first..=change.last) {
                    *heat = (*heat * 1.5).min(1.0);
                }
            }
        }
    }

    /// Carries suspicion to lines that no test is seen to execute.
    pub(crate) fn spread(&mut self, sources: &[ParsedSource]) {
        for source in sources {
            self.spread_functions(source);
        }
        self.spread_constants(sources);
    }

    fn spread_functions(&mut self, source: &ParsedSource) {
        for node in walk(source.root())
            .into_iter()
            .filter(|node| is_function(*node))
        {
            let (first, last) = (node.start_position().row + 1, node.end_position().row + 1);
            let Some(lines) = self.lines.get_mut(&source.path) else {
                return;
            };
            let hottest = lines
                .range(first..=last)
                .map(|(_, heat)| *heat)
                .fold(0.0, f64::max);
            if hottest <= 0.0 {
                continue;
            }
            let body = node
                .child_by_field_name("body")
                .map_or(first, |body| body.start_position().row + 1);
            for line in first..=last {
                let share = if line < body || line == first {
                    HEAD
                } else {
                    NOT_RUN
                };
                let old = lines.entry(line).or_insert(0.0);
                *old = old.max(hottest * share);
            }
        }
    }

    /// A constant is as suspicious as the code that names it, a little less.
    fn spread_constants(&mut self, sources: &[ParsedSource]) {
        let mut by_word: HashMap<String, f64> = HashMap::new();
        for source in sources {
            for (row, text) in source.text.lines().enumerate() {
                let heat = self.at(&source.path, row + 1);
                if heat > 0.0 {
                    for word in text
                        .split(|c: char| !c.is_alphanumeric() && c != '_')
                        .filter(|word| !word.is_empty())
                    {
                        let known = by_word.entry(word.to_owned()).or_default();
                        *known = known.max(heat);
                    }
                }
            }
        }
        for source in sources {
            for node in walk(source.root()) {
                let name = match node.kind() {
                    "assignment" => node.child_by_field_name("left"),
                    "variable_declarator"
                    | "const_item"
                    | "static_item"
                    | "field_definition"
                    | "public_field_definition" => node
                        .child_by_field_name("name")
                        .or_else(|| node.child_by_field_name("property")),
                    _ => None,
                };
                let Some(name) = name else { continue };
                let (first, last) = (node.start_position().row + 1, node.end_position().row + 1);
                if crate::syntax::function(node).is_some() || last - first > 60 {
                    continue;
                }
                if let Some(heat) = by_word.get(source.of(name)) {
                    for line in first..=last {
                        self.warm(&source.path, line, heat * NAMED);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(failed: bool, lines: &[usize]) -> LinesOfTest {
        LinesOfTest {
            failed,
            lines: [("a.py".to_owned(), lines.to_vec())].into(),
        }
    }

    #[test]
    fn without_lines_a_function_that_a_failing_test_names_is_the_hottest() {
        let text = "export function other(a) {\n  return a < 1;\n}\n\nexport const withSlash = (a) => {\n  return a > 1;\n};\n";
        let sources = [ParsedSource::parse("src/url.js", text.as_bytes()).unwrap()];
        let mut heat = Heat::even(&sources, 0.2);
        heat.named(
            &["test/slash.test.js > withSlash, a query > foo".to_owned()],
            &sources,
        );
        assert!(heat.at("src/url.js", 6) > heat.at("src/url.js", 2));
        let before = heat.at("src/url.js", 2);
        heat.named(&["test/url.test.js > works".to_owned()], &sources);
        assert!(heat.at("src/url.js", 2) > before, "its file is named");
        assert_eq!(stem("test/test_cart.py"), Some("cart"));
        assert_eq!(stem("a sentence"), None);
    }

    #[test]
    fn a_line_that_only_the_failing_test_runs_is_the_hottest() {
        let text = "LIMIT = 3\ndef f(x):\n    if x:\n        return LIMIT\n    return 2\n";
        let source = ParsedSource::parse("a.py", text.as_bytes()).unwrap();
        let sources = [source];
        let mut heat = Heat::ochiai(&[test(true, &[3, 4]), test(false, &[3, 5])], &sources);
        heat.spread(&sources);
        assert!((heat.at("a.py", 4) - 1.0).abs() < 1e-9);
        assert!(heat.at("a.py", 3) < 1.0 && heat.at("a.py", 3) > heat.at("a.py", 5));
        assert!(
            heat.at("a.py", 1) > 0.3,
            "the constant is named by the hottest line"
        );
        assert_eq!(heat.hottest(1)[0].1, 4);
    }
}
