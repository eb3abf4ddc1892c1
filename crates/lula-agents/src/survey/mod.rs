//! Looking a project over for a coder: the map of what matters for the task, the places its words
//! stand, and what the project says to those who change it. Files come through the runner; within the
//! same budget, the same files and the same task give the same survey.

mod instructions;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;

use lula_index::{
    FileStanding, IndexLanguage, MAX_FILE, SymbolIndex, TaskPlace, TaskPlaces, TaskTerm,
    cache_name, estimate, silent_names, task_places, task_terms,
};
use lula_protocol::call::SearchFiles;
use lula_protocol::output::{DirectoryEntry, SearchMatch};
use lula_protocol::{
    ProtocolVersion, ToolAction, ToolCall, ToolOutcome, ToolOutputDetails, ToolResult, WorkspaceId,
};
use lula_repair::trial::tail;
use serde::{Deserialize, Serialize};

use crate::runner_port::{self, EffectIdentity, Reply, RunnerPort, RunnerPortError};

/// Most files whose symbols are looked at, and most bytes of them.
const SOURCES: usize = 4_000;
const BYTES: u64 = 64 << 20;
/// Most terms that are asked of the runner, because no source holds them, and most lines of each.
const ASKED: usize = 4;
const LINES: usize = 4;
/// Longest line that is shown, in bytes.
const LINE: usize = 200;
/// Of what map and places may take together, the part of the places.
const PLACES_PART: usize = 3;
/// So many of the first files of the map, and of the places, decide whose folders are heard.
const LEADING: usize = 6;

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
    /// How many tokens map and places may take together.
    pub tokens: u64,
    /// How many bytes of the project's own instructions are shown; nothing in logs from before they
    /// were counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
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
    let project = ProjectSources::read(runner, effect, workspace, &listing.files).await?;
    let silent = silent_names(
        &wanted.repository,
        listing.files.iter().map(|file| file.path.as_str()),
    );
    let terms = task_terms(&wanted.text, &silent);
    let room = bytes(wanted.tokens) / PLACES_PART;
    let found = project.places(&terms, room);
    let mut hits: Vec<String> = found.lines.iter().map(TaskPlace::to_string).collect();
    let used: usize = hits.iter().map(String::len).sum();
    let more = elsewhere(
        runner,
        effect,
        workspace,
        &found.missing,
        room.saturating_sub(used),
    )
    .await?;
    hits.extend(more);
    let used: usize = hits.iter().map(|line| line.len() + 1).sum();
    let budget = wanted
        .tokens
        .saturating_sub(u64::try_from(used).unwrap_or(u64::MAX).div_ceil(3));
    let task = lula_index::MapQuery {
        text: wanted.text.clone(),
        files: wanted.files.clone(),
        lines: found
            .lines
            .iter()
            .map(|it| (it.path.clone(), it.line))
            .collect(),
        silent: silent.into_iter().chain(found.common).collect(),
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
    let holds_named =
        |file: &lula_index::MappedFile| file.symbols.iter().any(|symbol| symbol.named);
    ranked.sort_by(|a, b| {
        let order = holds_named(b).cmp(&holds_named(a));
        order
            .then_with(|| b.rank.total_cmp(&a.rank))
            .then_with(|| a.path.cmp(&b.path))
    });
    let ranked: Vec<String> = ranked.into_iter().map(|file| file.path).collect();
    let matter = found.lines.iter().map(|place| &place.path).take(LEADING);
    let matter: Vec<String> = matter.chain(ranked.iter().take(LEADING)).cloned().collect();
    let files: BTreeSet<&str> = listing
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let named = instructions::named(&files, &matter);
    let texts = runner_port::fetch(runner, effect, workspace, &named).await?;
    let texts = named.into_iter().zip(texts);
    let texts = texts
        .map(|(path, text)| (path, text.unwrap_or_default()))
        .collect();
    let most = wanted
        .instructions
        .map_or(bytes(wanted.tokens / 4), |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
    Ok(ProjectSurvey {
        files: listing.files.into_iter().map(|file| file.path).collect(),
        more: listing.more,
        map: map.text,
        ranked,
        instructions: instructions::shown(texts, most),
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

    /// Where what a task names stands, in lines of so many bytes together.
    fn places(&self, terms: &[TaskTerm], most: usize) -> TaskPlaces {
        let mut texts: Vec<(&str, &str)> = self
            .texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        texts.sort_unstable();
        task_places(terms, texts.into_iter(), most)
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

/// Where terms stand that no source holds: in templates, configuration and data. What is written for
/// people comes last, what programs wrote never.
async fn elsewhere(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
    missing: &[TaskTerm],
    mut left: usize,
) -> Result<Vec<String>, RunnerPortError> {
    let mut hits: Vec<(FileStanding, String)> = Vec::new();
    for term in missing.iter().take(ASKED) {
        let part = effect.part(&term.text);
        let call = ToolCall {
            protocol: ProtocolVersion,
            effect: part.id,
            epoch: part.epoch,
            run: part.run,
            workspace: workspace.clone(),
            action: ToolAction::Search(SearchFiles {
                pattern: term.text.clone(),
                literal: true,
                ..SearchFiles::default()
            }),
        };
        let lines = matches(runner.call(&call).await?)?.into_iter();
        let lines = lines.filter(|found| found.text.contains(&term.text));
        let mut lines: Vec<(FileStanding, String)> = lines
            .map(|SearchMatch { path, line, text }| {
                let shown = format!("{path}:{line}:{text}");
                (FileStanding::of(&path), begin(&shown, LINE).to_owned())
            })
            .filter(|(standing, _)| *standing < FileStanding::Noise)
            .collect();
        lines.sort_by_key(|(standing, _)| *standing);
        hits.extend(lines.into_iter().take(LINES));
    }
    hits.sort_by_key(|(standing, _)| *standing);
    hits.retain(|(_, line)| {
        let fits = line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    Ok(hits.into_iter().map(|(_, line)| line).collect())
}

/// The lines that a search found; none where it could not search. Where people are asked first there
/// is no answer yet.
fn matches(result: ToolResult) -> Result<Vec<SearchMatch>, RunnerPortError> {
    match result.outcome {
        ToolOutcome::Done { output } => Ok(match output.details {
            Some(ToolOutputDetails::Matches { matches, .. }) => matches,
            _ => Vec::new(),
        }),
        outcome => Reply::of(ToolResult { outcome, ..result }, usize::MAX).map(|_| Vec::new()),
    }
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
    fn the_beginning_of_a_text_is_whole_characters() {
        assert_eq!(begin("añb", 2), "a");
        assert_eq!(begin("ab", 9), "ab");
    }
}
