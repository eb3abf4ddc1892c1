//! Looking a project over for a coder: the map of what matters for the task, the places its words
//! stand, and what the project says to those who change it. Files come through the runner; within the
//! same budget, the same files and the same task give the same survey.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use lula_index::{IndexLanguage, MAX_FILE, SymbolIndex, cache_name, estimate};
use lula_protocol::call::SearchFiles;
use lula_protocol::output::DirectoryEntry;
use lula_protocol::{ProtocolVersion, ToolAction, ToolCall, WorkspaceId};
use lula_repair::trial::tail;
use serde::{Deserialize, Serialize};

use crate::runner_port::{self, EffectIdentity, Reply, RunnerPort, RunnerPortError};

/// Most files whose symbols are looked at, and most bytes of them.
const SOURCES: usize = 4_000;
const BYTES: u64 = 64 << 20;
/// What projects tell agents in. Each is material like any other file.
const INSTRUCTIONS: [&str; 4] = [
    "AGENTS.md",
    "CLAUDE.md",
    ".github/copilot-instructions.md",
    "CONTRIBUTING.md",
];
/// Most words that are searched for, and most lines of each.
const WORDS: usize = 5;
const LINES: usize = 6;
/// Longest line that is shown.
const LINE: usize = 200;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyQuery {
    /// The task, with the names of failing tests and what they said.
    pub text: String,
    /// Files that are known to matter.
    pub files: Vec<String>,
    /// The repository, by which what is known of it is found again.
    pub repository: String,
    /// How many tokens it may all take.
    pub tokens: u64,
}

/// What looking a project over found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSurvey {
    /// Every file that was listed.
    pub files: Vec<String>,
    /// Whether there are more.
    pub more: bool,
    /// The map of definitions, as text for a model.
    pub map: String,
    /// The files on it, the one that matters most first.
    pub ranked: Vec<String>,
    /// Instruction files with their beginnings.
    pub instructions: Vec<(String, String)>,
    /// Lines where words of the task stand: `path:line:text`.
    pub hits: Vec<String>,
}

/// Looks a project over.
pub(crate) async fn survey(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
    wanted: &SurveyQuery,
    cache: Option<&Path>,
) -> Result<ProjectSurvey, RunnerPortError> {
    let listing = runner_port::files(runner, effect, workspace).await?;
    let named: Vec<String> = INSTRUCTIONS
        .iter()
        .filter(|name| listing.files.iter().any(|file| file.path == **name))
        .map(|name| (*name).to_owned())
        .collect();
    let texts = runner_port::fetch(runner, effect, workspace, &named).await?;
    // A quarter for what the project says, a tenth for places; the map gets the rest.
    let mut left = bytes(wanted.tokens / 4);
    let mut instructions = Vec::new();
    for (name, text) in named.into_iter().zip(texts) {
        let text = begin(text.unwrap_or_default().trim(), left).to_owned();
        left = left.saturating_sub(text.len());
        if !text.is_empty() {
            instructions.push((name, text));
        }
    }
    let hits = places(runner, effect, workspace, wanted).await?;
    let project = ProjectSources::read(runner, effect, workspace, &listing.files).await?;
    let used: usize = instructions
        .iter()
        .map(|(_, text)| text.len())
        .sum::<usize>()
        + hits.iter().map(String::len).sum::<usize>();
    let budget = wanted
        .tokens
        .saturating_sub(u64::try_from(used).unwrap_or(u64::MAX) / 3);
    let task = lula_index::MapQuery {
        text: wanted.text.clone(),
        files: wanted.files.clone(),
        ..lula_index::MapQuery::default()
    };
    let kept = cache.map(|directory| directory.join(cache_name(Path::new(&wanted.repository))));
    let drawn = tokio::task::spawn_blocking(move || {
        let index = project.index(kept.as_deref());
        index.map(&task, budget, &estimate)
    });
    let map = drawn
        .await
        .map_err(|error| RunnerPortError::Failed(format!("the map could not be drawn: {error}")))?;
    let mut ranked = map.files;
    ranked.sort_by(|a, b| b.rank.total_cmp(&a.rank).then_with(|| a.path.cmp(&b.path)));
    Ok(ProjectSurvey {
        files: listing.files.into_iter().map(|file| file.path).collect(),
        more: listing.more,
        map: map.text,
        ranked: ranked.into_iter().map(|file| file.path).collect(),
        instructions,
        hits,
    })
}

/// The sources of a project: what is listed, and the texts of what can be parsed.
pub(crate) struct ProjectSources {
    listed: Vec<lula_index::IndexedFile>,
    pub(crate) texts: HashMap<String, String>,
}

impl ProjectSources {
    /// Reads through the runner what is listed.
    pub(crate) async fn read(
        runner: &dyn RunnerPort,
        effect: &EffectIdentity,
        workspace: &WorkspaceId,
        files: &[DirectoryEntry],
    ) -> Result<Self, RunnerPortError> {
        let paths: Vec<String> = sources(files)
            .iter()
            .map(|file| file.path.clone())
            .collect();
        let read = runner_port::fetch(runner, effect, workspace, &paths).await?;
        let texts = paths.into_iter().zip(read);
        Ok(Self {
            listed: files
                .iter()
                .map(|file| lula_index::IndexedFile {
                    path: file.path.clone(),
                    size: file.bytes,
                    fingerprint: None,
                })
                .collect(),
            texts: texts
                .filter_map(|(path, text)| Some((path, text?)))
                .collect(),
        })
    }

    /// The paths of everything that is listed.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.listed.iter().map(|file| file.path.clone()).collect()
    }

    /// Its symbols, with what is known of them kept in that file.
    pub(crate) fn index(&self, kept: Option<&Path>) -> SymbolIndex {
        let mut index = kept
            .map(|path| SymbolIndex::load(path).0)
            .unwrap_or_default();
        let update = index.update(self.listed.clone(), &|path| {
            let text = self.texts.get(path).map(|text| text.clone().into_bytes());
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        });
        if let Some(path) = kept.filter(|_| update.changed) {
            // What is not kept is found out again.
            let _ = index.save(path);
        }
        index
    }
}

/// Bytes that so many tokens are, by the map's own estimate.
fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
}

/// The beginning of a text, on a character boundary.
fn begin(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Files with symbols, within bounds, in the order of their paths.
fn sources(files: &[DirectoryEntry]) -> Vec<&DirectoryEntry> {
    let mut total = 0;
    let known = |file: &&DirectoryEntry| {
        IndexLanguage::of(&file.path).is_some()
            && file.bytes <= u64::try_from(MAX_FILE).unwrap_or(0)
    };
    files
        .iter()
        .filter(known)
        .take(SOURCES)
        .take_while(|file| {
            total += file.bytes;
            total <= BYTES
        })
        .collect()
}

/// Where the telling words of the task stand.
async fn places(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
    wanted: &SurveyQuery,
) -> Result<Vec<String>, RunnerPortError> {
    let mut left = bytes(wanted.tokens / 10);
    let mut hits = Vec::new();
    for word in telling(&wanted.text) {
        let part = effect.part(&word);
        let call = ToolCall {
            protocol: ProtocolVersion,
            effect: part.id,
            epoch: part.epoch,
            run: part.run,
            workspace: workspace.clone(),
            action: ToolAction::Search(SearchFiles {
                pattern: word.clone(),
                literal: true,
                glob: None,
            }),
        };
        let said = Reply::of(runner.call(&call).await?)?;
        if said.failed {
            continue;
        }
        let lines = said.text.lines().filter(|line| line.contains(&word));
        for line in lines.take(LINES) {
            let line = begin(line, LINE);
            if line.len() > left {
                return Ok(hits);
            }
            left -= line.len();
            hits.push(line.to_owned());
        }
    }
    Ok(hits)
}

/// Words that stand for something in code rather than in a language: names with an underscore, a
/// change of case, or between backticks. In the order they come, each once.
fn telling(text: &str) -> Vec<String> {
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let is_name = |word: &str| {
        let inner = word.get(1..).unwrap_or_default();
        word.contains('_')
            || (word.chars().any(char::is_lowercase) && inner.chars().any(char::is_uppercase))
            || quoted.iter().any(|part| part.contains(word))
    };
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let plain = word.trim_matches('_');
        if plain.len() > 3 && is_name(plain) && !found.iter().any(|known| known == plain) {
            found.push(plain.to_owned());
        }
        if found.len() == WORDS {
            break;
        }
    }
    found
}

/// The end of what tests said, for ranking.
pub(crate) fn about(task: &str, messages: &[(String, String)]) -> String {
    let mut text = task.to_owned();
    for (id, message) in messages.iter().take(8) {
        text.push('\n');
        text.push_str(id);
        text.push('\n');
        text.push_str(tail(message, 600));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_are_searched_for_and_words_of_a_language_are_not() {
        let text = "Fix the rounding in `total` of ShoppingCart, see test_total_of_two and \
                    load_items; load_items is wrong";
        assert_eq!(
            telling(text),
            ["total", "ShoppingCart", "test_total_of_two", "load_items"]
        );
        assert!(telling("please make everything better").is_empty());
    }

    #[test]
    fn the_beginning_of_a_text_is_whole_characters() {
        assert_eq!(begin("añb", 2), "a");
        assert_eq!(begin("ab", 9), "ab");
    }
}
