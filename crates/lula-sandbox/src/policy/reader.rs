//! From a TOML document to an overlay, key by key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use lula_protocol::IsolationTier;
use toml_edit::{Item, Table, TableLike};

use super::toml::PolicyMistake;
use super::{LayerName, Network, PackageCache, PolicyOverlay, Profile, VariableName};

/// A text of the document and where it stands.
type Spanned<'t> = (&'t str, Option<Range<usize>>);

/// The line of an offset, counted from one.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The changes a document makes, and every mistake in it in the order of the text.
pub(super) fn read(text: &str, root: &Table) -> (PolicyOverlay, Vec<PolicyMistake>) {
    let mut reader = Reader {
        text,
        mistakes: Vec::new(),
    };
    let overlay = reader.overlay(root);
    reader.mistakes.sort_by_key(|mistake| mistake.line);
    (overlay, reader.mistakes)
}

/// Walks a document and gathers mistakes instead of stopping at the first.
struct Reader<'a> {
    text: &'a str,
    mistakes: Vec<PolicyMistake>,
}

const KEYS: [&str; 9] = [
    "profile",
    "min_tier",
    "required_layers",
    "network",
    "nested_userns",
    "caches",
    "paths",
    "environment",
    "limits",
];
const PATH_KEYS: [&str; 3] = ["read", "write", "mask"];
const LIMIT_KEYS: [&str; 7] = [
    "memory",
    "cpu",
    "pids",
    "disk",
    "open_files",
    "output",
    "wall",
];

impl Reader<'_> {
    fn overlay(&mut self, root: &Table) -> PolicyOverlay {
        let mut overlay = PolicyOverlay::default();
        for (key, item) in self.known(root, "", &KEYS) {
            match key {
                "profile" => {
                    overlay.profile =
                        self.name(key, item, Profile::WHAT, Profile::ALL, Profile::name);
                }
                "min_tier" => {
                    overlay.min_tier =
                        self.name(key, item, "tier", &IsolationTier::ALL, IsolationTier::name);
                }
                "required_layers" => {
                    let what = LayerName::WHAT;
                    overlay.required_layers =
                        self.names(key, item, what, LayerName::ALL, LayerName::name);
                }
                "network" if item.as_str() == Some(Network::Host.name()) => {
                    let problem =
                        "the host's network is given by the flag --net-host, never in a file";
                    self.mistake(key, item.span(), problem.to_owned());
                }
                "network" => {
                    let all = &[Network::None, Network::Allowlist];
                    overlay.network = self.name(key, item, Network::WHAT, all, Network::name);
                }
                "nested_userns" => overlay.nested_userns = self.switch(key, item),
                "caches" => {
                    let what = PackageCache::WHAT;
                    overlay.caches =
                        self.names(key, item, what, PackageCache::ALL, PackageCache::name);
                }
                "environment" => overlay.environment = self.environment(item),
                "paths" => {
                    for (name, item) in self.table(key, item, &PATH_KEYS) {
                        let paths = self.texts(&format!("paths.{name}"), item);
                        match name {
                            "read" => overlay.paths.read = paths,
                            "write" => overlay.paths.write = paths,
                            _ => overlay.paths.mask = paths,
                        }
                    }
                }
                _ => {
                    for (name, item) in self.table(key, item, &LIMIT_KEYS) {
                        let key = format!("limits.{name}");
                        let limits = &mut overlay.limits;
                        match name {
                            "memory" => limits.memory = self.amount(&key, item),
                            "cpu" => limits.cpu = self.amount(&key, item),
                            "pids" => limits.pids = self.count(&key, item),
                            "disk" => limits.disk = self.amount(&key, item),
                            "open_files" => limits.open_files = self.count(&key, item),
                            "output" => limits.output = self.amount(&key, item),
                            _ => limits.wall = self.amount(&key, item),
                        }
                    }
                }
            }
        }
        overlay
    }

    fn mistake(&mut self, key: &str, span: Option<Range<usize>>, problem: String) {
        let at = span.map_or(0, |span| span.start);
        self.mistakes.push(PolicyMistake {
            line: line(self.text, at),
            key: key.to_owned(),
            problem,
        });
    }

    fn expected<T>(&mut self, key: &str, item: &Item, what: &str) -> Option<T> {
        let problem = format!("expected {what}, found {}", item.type_name());
        self.mistake(key, item.span(), problem);
        None
    }

    /// The entries of a table whose keys are known; the others become mistakes.
    fn known<'t>(
        &mut self,
        table: &'t dyn TableLike,
        prefix: &str,
        keys: &[&'static str],
    ) -> Vec<(&'static str, &'t Item)> {
        let mut entries = Vec::new();
        for (name, item) in table.iter() {
            if let Some(key) = keys.iter().find(|key| **key == name) {
                entries.push((*key, item));
            } else {
                let span = table.key(name).and_then(toml_edit::Key::span);
                let problem = format!("unknown key; {}", suggestion(name, keys));
                self.mistake(&format!("{prefix}{}", shown(name)), span, problem);
            }
        }
        entries
    }

    fn table<'t>(
        &mut self,
        key: &str,
        item: &'t Item,
        keys: &[&'static str],
    ) -> Vec<(&'static str, &'t Item)> {
        match item.as_table_like() {
            Some(table) => self.known(table, &format!("{key}."), keys),
            None => self.expected(key, item, "a table").unwrap_or_default(),
        }
    }

    fn switch(&mut self, key: &str, item: &Item) -> Option<bool> {
        item.as_bool()
            .or_else(|| self.expected(key, item, "true or false"))
    }

    fn count(&mut self, key: &str, item: &Item) -> Option<u32> {
        let count = item
            .as_integer()
            .and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| *count > 0);
        if count.is_none() {
            self.mistake(
                key,
                item.span(),
                "expected a whole number above zero".to_owned(),
            );
        }
        count
    }

    fn amount<T: FromStr<Err: fmt::Display>>(&mut self, key: &str, item: &Item) -> Option<T> {
        let Some(text) = item.as_str() else {
            return self.expected(
                key,
                item,
                "text in quotes, such as \"512MiB\", \"90s\" or \"75%\"",
            );
        };
        self.parsed(key, text, item.span())
    }

    fn parsed<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &str,
        text: &str,
        span: Option<Range<usize>>,
    ) -> Option<T> {
        text.parse()
            .map_err(|error: T::Err| self.mistake(key, span, error.to_string()))
            .ok()
    }

    fn name<T: Copy>(
        &mut self,
        key: &str,
        item: &Item,
        what: &str,
        all: &[T],
        name_of: fn(T) -> &'static str,
    ) -> Option<T> {
        let Some(text) = item.as_str() else {
            return self.expected(key, item, &format!("the name of a {what} in quotes"));
        };
        self.one_of(key, text, item.span(), what, all, name_of)
    }

    fn one_of<T: Copy>(
        &mut self,
        key: &str,
        text: &str,
        span: Option<Range<usize>>,
        what: &str,
        all: &[T],
        name_of: fn(T) -> &'static str,
    ) -> Option<T> {
        let found = all.iter().copied().find(|one| name_of(*one) == text);
        if found.is_none() {
            let names: Vec<_> = all.iter().map(|one| name_of(*one)).collect();
            let problem = format!(
                "no {what} is called {}; {}",
                shown(text),
                suggestion(text, &names)
            );
            self.mistake(key, span, problem);
        }
        found
    }

    fn items<'t>(&mut self, key: &str, item: &'t Item) -> Option<Vec<Spanned<'t>>> {
        let Some(array) = item.as_array() else {
            return self.expected(key, item, "a list of texts in quotes");
        };
        let mut texts = Vec::new();
        for value in array {
            if let Some(text) = value.as_str() {
                texts.push((text, value.span()));
            } else {
                let problem = format!("expected text in quotes, found {}", value.type_name());
                self.mistake(key, value.span(), problem);
            }
        }
        Some(texts)
    }

    fn names<T: Copy + Ord>(
        &mut self,
        key: &str,
        item: &Item,
        what: &str,
        all: &[T],
        name_of: fn(T) -> &'static str,
    ) -> Option<BTreeSet<T>> {
        let texts = self.items(key, item)?;
        let found = texts.into_iter();
        Some(
            found
                .filter_map(|(text, span)| self.one_of(key, text, span, what, all, name_of))
                .collect(),
        )
    }

    fn texts<T: FromStr<Err: fmt::Display> + Ord>(
        &mut self,
        key: &str,
        item: &Item,
    ) -> Option<BTreeSet<T>> {
        let texts = self.items(key, item)?;
        Some(
            texts
                .into_iter()
                .filter_map(|(text, span)| self.parsed(key, text, span))
                .collect(),
        )
    }

    fn environment(&mut self, item: &Item) -> Option<BTreeMap<VariableName, String>> {
        let Some(table) = item.as_table_like() else {
            return self.expected("environment", item, "a table of NAME = \"value\"");
        };
        let mut environment = BTreeMap::new();
        for (name, item) in table.iter() {
            let key = format!("environment.{}", shown(name));
            let span = table.key(name).and_then(toml_edit::Key::span);
            let name = self.parsed::<VariableName>(&key, name, span);
            match item.as_str() {
                None => {
                    let _: Option<()> = self.expected(&key, item, "text in quotes");
                }
                Some(value) if value.contains('\0') => {
                    self.mistake(&key, item.span(), "a value cannot hold a NUL".to_owned());
                }
                Some(value) => {
                    environment.extend(name.map(|name| (name, value.to_owned())));
                }
            }
        }
        Some(environment)
    }
}

/// Text of a stranger, safe to print and not endless.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && !short.is_empty()
    {
        short
    } else {
        format!("{short:?}")
    }
}

fn suggestion(given: &str, names: &[&str]) -> String {
    let given = given.chars().take(40).collect::<String>().to_lowercase();
    let nearest = names
        .iter()
        .max_by(|a, b| strsim::jaro_winkler(a, &given).total_cmp(&strsim::jaro_winkler(b, &given)));
    match nearest {
        Some(name) if strsim::jaro_winkler(name, &given) > 0.75 => format!("did you mean {name}?"),
        _ => format!("valid: {}", names.join(", ")),
    }
}
