//! Groups of names: where the package tools and git of this machine go, as they say themselves.
//!
//! No list of registries is kept here. Each tool is asked, with the mirrors it is configured with, and its
//! answer is kept for a day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lula_egress::{DomainName, EgressRule};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::NetworkError;
use super::file::ShortRule;
use super::questions::{ToolQuestions, own_directory, own_file};
use super::urls;
use crate::error::HostError;
use crate::installation::Installation;
use crate::record::now_ms;

/// How long an answer is believed.
const A_DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A group with what was found out about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkGroup {
    pub name: String,
    /// What may be reached.
    pub rules: Vec<EgressRule>,
    /// Variables that lead the tool there inside.
    pub variables: BTreeMap<String, String>,
    /// The tool that was asked, and for what.
    pub asked: String,
    /// When, in Unix milliseconds.
    pub asked_ms: u64,
}

/// What a tool said.
#[derive(Debug, Default)]
struct ToolAnswer {
    rules: Vec<EgressRule>,
    variables: BTreeMap<String, String>,
}

impl ToolAnswer {
    /// Takes an address in, where a rule can name it. Returns it without secrets.
    fn add(&mut self, address: &str) -> Option<String> {
        let read = urls::read(address)?;
        let rule = urls::where_it_leads(read.rule);
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
        Some(read.without_secrets)
    }

    fn lead(&mut self, variable: &str, address: Option<String>) {
        if let Some(address) = address {
            self.variables.insert(variable.to_owned(), address);
        }
    }
}

type Asking = fn(&ToolQuestions<'_>) -> ToolAnswer;

/// The groups there are: name, what is asked, how.
const GROUPS: [(&str, &str, Asking); 8] = [
    ("crates", "cargo: its configuration and its index", crates),
    ("debian", "apt-get indextargets", debian),
    ("git", "the remotes of this repository", git),
    (
        "github",
        "gh, and remotes with github in their name",
        github,
    ),
    ("go", "go env GOPROXY GOSUMDB", go),
    (
        "maven",
        "mvn: settings.xml and its built-in repositories",
        maven,
    ),
    ("npm", "npm config list", npm),
    ("pypi", "pip config list, and pip's defaults", pypi),
];

/// The names of all groups that tools are asked for.
pub fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, ..)| *name)
}

pub(super) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The groups of these names, and why others are not there; an error where one was named. Without names,
/// all there are.
pub fn found(
    named: &[String],
    refresh: bool,
    installation: &Installation,
) -> Result<(Vec<NetworkGroup>, Vec<HostError>), HostError> {
    let project = super::project();
    let mut answers = GroupAnswers::open(installation)?;
    let all: Vec<String> = names().map(str::to_owned).collect();
    let wanted = if named.is_empty() { &all } else { named };
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in wanted {
        let group = if refresh {
            answers.ask(name, &project)
        } else {
            answers.group(name, &project)
        };
        match group {
            Ok(group) => found.push(group),
            Err(error) if named.is_empty() => missing.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((found, missing))
}

impl NetworkGroup {
    /// What may be reached, for a person.
    pub fn rules(&self) -> String {
        let rules: Vec<_> = self.rules.iter().map(ToString::to_string).collect();
        rules.join(", ")
    }

    pub(super) fn of_operator(name: &str, rules: &[ShortRule]) -> Self {
        Self {
            name: name.to_owned(),
            rules: rules.iter().map(|rule| rule.0.clone()).collect(),
            variables: BTreeMap::new(),
            asked: "your file of network rules".to_owned(),
            asked_ms: now_ms(),
        }
    }
}

/// Answers of tools, those of the last day kept in a file.
#[derive(Debug)]
pub struct GroupAnswers {
    path: PathBuf,
    known: BTreeMap<String, NetworkGroup>,
}

impl GroupAnswers {
    /// Reads what is known. A file that cannot be read is as good as none: the tools are asked again.
    pub fn open(installation: &Installation) -> Result<Self, HostError> {
        let path = super::journal::directory(installation)?.join("groups.json");
        let known = std::fs::read_to_string(&path).ok();
        let known = known.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Self {
            path,
            known: known.unwrap_or_default(),
        })
    }

    /// A group, of which the tool is asked unless it said so within the last day.
    pub fn group(&mut self, name: &str, project: &Path) -> Result<NetworkGroup, HostError> {
        // What a repository's remotes are depends on the repository.
        let lasting = !matches!(name, "git" | "github");
        let fresh = |group: &&NetworkGroup| now_ms().saturating_sub(group.asked_ms) < A_DAY_MS;
        if lasting && let Some(known) = self.known.get(name).filter(fresh) {
            return Ok(known.clone());
        }
        self.ask(name, project)
    }

    /// Asks the tool of a group now.
    pub fn ask(&mut self, name: &str, project: &Path) -> Result<NetworkGroup, HostError> {
        let group = GROUPS.iter().find(|(known, ..)| *known == name);
        let Some((_, asked, asking)) = group else {
            let known: Vec<_> = names().collect();
            return Err(NetworkError::Group {
                group: name.to_owned(),
                why: format!(
                    "there is none; known are {}, and those of your file of network rules",
                    known.join(", ")
                ),
            }
            .into());
        };
        let answer = asking(&ToolQuestions::beside(project));
        if answer.rules.is_empty() {
            return Err(NetworkError::Group {
                group: name.to_owned(),
                why: format!("nothing on this machine names a host for it (asked: {asked})"),
            }
            .into());
        }
        let group = NetworkGroup {
            name: name.to_owned(),
            rules: answer.rules,
            variables: answer.variables,
            asked: (*asked).to_owned(),
            asked_ms: now_ms(),
        };
        self.known.insert(name.to_owned(), group.clone());
        self.keep();
        Ok(group)
    }

    /// Which of the groups that are known contain a name.
    pub fn containing(&self, name: &DomainName, port: u16) -> Vec<String> {
        let contains = |group: &&NetworkGroup| {
            let mut rules = group.rules.iter();
            rules.any(|rule| rule.port() == port && rule.domain().matches(name))
        };
        let found = self.known.values().filter(contains);
        found.map(|group| group.name.clone()).collect()
    }

    /// Writes down what is known. Where that fails the tools are asked again.
    fn keep(&self) {
        if let Ok(text) = serde_json::to_string_pretty(&self.known) {
            let _ = lula_files::replace_private(&self.path, text.as_bytes());
        }
    }
}

fn pypi(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    let said = questions
        .ask("pip", &["config", "list"])
        .unwrap_or_default();
    let mut configured = |key: &str, variable: &str| {
        let mut lines = said.lines().filter_map(|line| line.split_once('='));
        let value = lines.find(|(name, _)| name.ends_with(key))?.1;
        let addresses = value.trim_matches('\'').split_whitespace();
        let clean: Vec<_> = addresses.filter_map(|one| answer.add(one)).collect();
        let clean = (!clean.is_empty()).then(|| clean.join(" "));
        answer.lead(variable, clean.clone());
        clean
    };
    let index = configured(".index-url", "PIP_INDEX_URL");
    configured(".extra-index-url", "PIP_EXTRA_INDEX_URL");
    if index.is_none() {
        let script = "from pip._internal.models.index import PyPI; \
                      print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)";
        let defaults = questions.ask("python3", &["-I", "-c", script]);
        for address in defaults.unwrap_or_default().lines() {
            answer.add(address);
        }
    }
    answer
}

fn npm(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    let said = questions.ask("npm", &["config", "list", "--json"]);
    let said: Value = said
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    for (key, value) in said.as_object().into_iter().flatten() {
        if let Some(address) = value.as_str().filter(|_| key.ends_with("registry")) {
            let clean = answer.add(address);
            if key == "registry" {
                answer.lead("NPM_CONFIG_REGISTRY", clean);
            }
        }
    }
    answer
}

fn crates(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    let of_cargo = |name: &str| own_file("CARGO_HOME", ".cargo", name);
    let text = of_cargo("config.toml").or_else(|| of_cargo("config"));
    let said: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
    // Sources and registries are tables of tables, in which these keys are addresses.
    for section in ["source", "registries"] {
        let tables = said.get(section).and_then(toml::Value::as_table);
        for table in tables.into_iter().flat_map(toml::Table::values) {
            for key in ["registry", "index", "git"] {
                if let Some(address) = table.get(key).and_then(toml::Value::as_str) {
                    answer.add(address);
                }
            }
        }
    }
    let replaced = said
        .get("source")
        .and_then(|sources| sources.get("crates-io"))
        .is_some_and(|source| source.get("replace-with").is_some());
    if replaced {
        return answer;
    }
    // Where it was before, cargo has a directory for each index, with what the index says of downloads.
    let indexes = own_directory("CARGO_HOME", ".cargo").map(|home| home.join("registry/index"));
    let entries = indexes.and_then(|path| std::fs::read_dir(path).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some((host, _)) = name.to_str().and_then(|name| name.rsplit_once('-')) {
            answer.add(&format!("https://{host}/"));
        }
        let text = std::fs::read_to_string(entry.path().join("config.json"));
        let said: Value = text
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        if let Some(address) = said["dl"].as_str() {
            answer.add(address);
        }
    }
    if answer.rules.is_empty() {
        built_into_cargo(questions, &mut answer);
    }
    answer
}

/// The address of the index that is part of cargo itself, where it was never used.
fn built_into_cargo(questions: &ToolQuestions<'_>, answer: &mut ToolAnswer) {
    const BEGINS: &[u8] = b"sparse+https://";
    let root = questions.ask("rustc", &["--print", "sysroot"]);
    let program = root.map(|root| PathBuf::from(root.trim()).join("bin/cargo"));
    let Some(bytes) = program.and_then(|path| std::fs::read(path).ok()) else {
        return;
    };
    let mut places = bytes.windows(BEGINS.len()).enumerate();
    let at = places.find(|(at, window)| {
        let next = bytes.get(at + BEGINS.len());
        *window == BEGINS && next.is_some_and(u8::is_ascii_lowercase)
    });
    if let Some((at, _)) = at {
        let rest = &bytes[at..];
        let end = BEGINS.len()
            + rest[BEGINS.len()..]
                .iter()
                .take(100)
                .take_while(|byte| **byte != b'/')
                .count();
        answer.add(&String::from_utf8_lossy(&rest[..end]));
    }
}

fn go(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    let said = questions.ask("go", &["env", "-json", "GOPROXY", "GOSUMDB"]);
    let said: Value = said
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let proxies = said["GOPROXY"].as_str().unwrap_or_default();
    let clean: Vec<_> = proxies
        .split([',', '|'])
        .filter_map(|one| answer.add(one))
        .collect();
    // Without `direct`: the hosts of modules are not of this group.
    answer.lead("GOPROXY", (!clean.is_empty()).then(|| clean.join(",")));
    // `name`, or `name+key address`.
    let sums = said["GOSUMDB"].as_str().unwrap_or_default();
    let (name, address) = sums.split_once(' ').unwrap_or((sums, ""));
    let host = name.split('+').next().unwrap_or_default();
    if address.is_empty() {
        answer.add(&format!("https://{host}/"));
    } else {
        answer.add(address);
    }
    answer
}

fn maven(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    if let Some(text) = own_file("MAVEN_USER_HOME", ".m2", "settings.xml") {
        for address in addresses_in(&text) {
            answer.add(address);
        }
    }
    if !answer.rules.is_empty() {
        return answer;
    }
    let program = questions
        .program("mvn")
        .and_then(|path| path.canonicalize().ok());
    let home = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::parent);
    let Some(home) = home else {
        return answer;
    };
    // The model that all projects inherit from is in one of its libraries.
    let libraries = std::fs::read_dir(home.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    for library in libraries {
        let name = library.file_name();
        if !name.to_string_lossy().starts_with("maven-model-builder-") {
            continue;
        }
        let path = library.path();
        let model = "org/apache/maven/model/pom-4.0.0.xml";
        let text = questions.ask("unzip", &["-p", &path.to_string_lossy(), model]);
        for address in addresses_in(&text.unwrap_or_default()) {
            answer.add(address);
        }
    }
    answer
}

/// What stands in `<url>…</url>`, outside of comments.
fn addresses_in(xml: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (number, part) in xml.split("<!--").enumerate() {
        let part = match part.split_once("-->") {
            Some((_, after)) => after,
            None if number == 0 => part,
            None => continue,
        };
        let all = part.split("<url>").skip(1);
        found.extend(all.filter_map(|after| Some(after.split_once("</url>")?.0)));
    }
    found
}

fn debian(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    let said = questions.ask("apt-get", &["indextargets", "--format", "$(REPO_URI)"]);
    for address in said.unwrap_or_default().lines() {
        answer.add(address);
    }
    answer
}

fn git(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    for address in remotes(questions) {
        answer.add(&address);
    }
    answer
}

fn github(questions: &ToolQuestions<'_>) -> ToolAnswer {
    let mut answer = ToolAnswer::default();
    for address in remotes(questions) {
        let named = urls::read(&address).map(|read| read.rule.domain().to_string());
        if named.is_some_and(|host| host.contains("github")) {
            answer.add(&address);
        }
    }
    // Each host that gh is logged in to is a key at the left edge.
    let said = own_file("GH_CONFIG_DIR", ".config/gh", "hosts.yml");
    for line in said.unwrap_or_default().lines() {
        if let Some(host) = line
            .strip_suffix(':')
            .filter(|host| !host.starts_with([' ', '#']))
        {
            answer.add(&format!("https://{host}/"));
        }
    }
    answer
}

/// What the remotes of the repository at hand are, read as a file: nothing of the repository runs.
fn remotes(questions: &ToolQuestions<'_>) -> Vec<String> {
    let config = questions.project().join(".git/config");
    let Some(config) = config.to_str() else {
        return Vec::new();
    };
    let asked = [
        "config",
        "--file",
        config,
        "--no-includes",
        "--get-regexp",
        r"^remote\..*\.url$",
    ];
    let said = questions.ask("git", &asked).unwrap_or_default();
    let words = said.lines().filter_map(|line| line.split_once(' '));
    words.map(|(_, address)| address.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_comments_do_not_count() {
        let xml = "<a><url>https://one.example.org/</url><!-- <url>https://two.example.org</url> -->\
                   <url>https://three.example.org</url></a>";
        assert_eq!(
            addresses_in(xml),
            ["https://one.example.org/", "https://three.example.org"]
        );
        assert!(addresses_in("<!-- <url>https://never.closed.org</url>").is_empty());
    }

    #[test]
    fn a_group_that_is_not_there_names_those_that_are() {
        let directory = tempfile::tempdir().unwrap();
        let mut answers = GroupAnswers {
            path: directory.path().join("groups.json"),
            known: BTreeMap::new(),
        };
        let refused = answers.group("pypy", directory.path()).unwrap_err();
        assert!(refused.to_string().contains("pypi"), "{refused}");
    }

    #[test]
    fn a_project_does_not_say_where_tools_go() {
        let project = tempfile::tempdir().unwrap();
        let program = project.path().join("pip");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let mut search =
            std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
        search.push(project.path().to_owned());
        let real = project.path().canonicalize().unwrap();
        let questions = ToolQuestions::beside(&real);
        assert_ne!(questions.program("pip").as_deref(), Some(&*program));
    }
}
