//! Policies as TOML: strict to read, with every mistake named by line, key and remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use lula_protocol::Tier;
use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike, Value};

use super::{LayerName, Network, Overlay, PackageCache, Policy, Profile, VariableName};

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct PolicyError {
    /// Every mistake found, in the order of the text. Never empty.
    pub mistakes: Vec<Mistake>,
}

impl PolicyError {
    fn lines(&self) -> String {
        let lines: Vec<_> = self.mistakes.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// One mistake in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, counted from one.
    pub line: usize,
    /// The key with its tables, such as `limits.memory`; empty where the text is not TOML.
    pub key: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

impl Policy {
    /// Reads a policy: the profile it names (`build` where it names none) with its own values.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        let overlay = Overlay::from_toml(text)?;
        let profile = overlay.profile.unwrap_or(Profile::DEFAULT);
        Ok(profile.policy().changed(overlay))
    }

    /// The policy in full, as TOML that reads back to the same policy.
    pub fn to_toml(&self) -> String {
        let mut document = DocumentMut::new();
        document["profile"] = self.profile.name().into();
        document["min_tier"] = self.min_tier.name().into();
        document["required_layers"] = list(self.required_layers.iter());
        document["network"] = self.network.name().into();
        document["nested_userns"] = self.nested_userns.into();
        document["caches"] = list(self.caches.iter());
        document["paths"] = table([
            ("read", list(self.paths.read.iter())),
            ("write", list(self.paths.write.iter())),
            ("mask", list(self.paths.mask.iter())),
        ]);
        document["environment"] = table(
            self.environment
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str().into())),
        );
        let limits = &self.limits;
        document["limits"] = table([
            ("memory", limits.memory.to_string().into()),
            ("cpu", limits.cpu.to_string().into()),
            ("pids", i64::from(limits.pids).into()),
            ("disk", limits.disk.to_string().into()),
            ("open_files", i64::from(limits.open_files).into()),
            ("output", limits.output.to_string().into()),
            ("wall", limits.wall.to_string().into()),
        ]);
        document.to_string()
    }
}

fn list<T: fmt::Display>(values: impl Iterator<Item = T>) -> Item {
    values
        .map(|value| Value::from(value.to_string()))
        .collect::<Array>()
        .into()
}

fn table<'a>(entries: impl IntoIterator<Item = (&'a str, Item)>) -> Item {
    let mut table = Table::new();
    for (name, item) in entries {
        table.insert(name, item);
    }
    Item::Table(table)
}

impl Overlay {
    /// Reads changes to a policy. Unknown keys are mistakes: a key that is ignored is a wish that
    /// is not kept.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let problem = format!("not TOML: {}", error.message());
            PolicyError {
                mistakes: vec![Mistake {
                    line: line(text, at),
                    key: String::new(),
                    problem,
                }],
            }
        })?;
        let mut reader = Reader {
            text,
            mistakes: Vec::new(),
        };
        let overlay = reader.overlay(document.as_table());
        reader.mistakes.sort_by_key(|mistake| mistake.line);
        if reader.mistakes.is_empty() {
            Ok(overlay)
        } else {
            Err(PolicyError {
                mistakes: reader.mistakes,
            })
        }
    }
}

/// A text of the document and where it stands.
type Spanned<'t> = (&'t str, Option<Range<usize>>);

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Walks a document and gathers mistakes instead of stopping at the first.
struct Reader<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
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
    fn overlay(&mut self, root: &Table) -> Overlay {
        let mut overlay = Overlay::default();
        for (key, item) in self.known(root, "", &KEYS) {
            match key {
                "profile" => {
                    overlay.profile =
                        self.name(key, item, Profile::WHAT, Profile::ALL, Profile::name);
                }
                "min_tier" => {
                    overlay.min_tier = self.name(key, item, "tier", &Tier::ALL, Tier::name);
                }
                "required_layers" => {
                    let what = LayerName::WHAT;
                    overlay.required_layers =
                        self.names(key, item, what, LayerName::ALL, LayerName::name);
                }
                "network" => {
                    let what = Network::WHAT;
                    overlay.network = self.name(key, item, what, Network::ALL, Network::name);
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
        self.mistakes.push(Mistake {
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
