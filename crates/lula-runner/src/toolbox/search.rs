//! Searching file contents.

use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use lula_protocol::call::SearchFiles;
use lula_protocol::output::SearchMatch;
use lula_protocol::{TextOrigin, ToolOutput, ToolOutputDetails};
use rustix::fs::FileType;

use super::error::ToolError;
use super::limits;
use super::read::cut;
use super::root::{ToolboxPath, WorkspaceRoot};
use super::walk::{DirectoryWalk, WalkEnding, WalkGlob, open_regular};

/// Largest size of a compiled pattern, in bytes.
const COMPILED: usize = 4 << 20;

pub(super) fn lines(root: &WorkspaceRoot, asked: &SearchFiles) -> Result<ToolOutput, ToolError> {
    let matcher = matcher(&asked.pattern, asked.literal)?;
    let glob = asked.glob.as_deref().map(WalkGlob::parse).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(16 << 20))
        .build();
    let walk = DirectoryWalk::new(None);
    let mut found = MatchCollector {
        path: String::new(),
        matches: Vec::new(),
        text: String::new(),
        full: false,
        deadline: walk.deadline,
    };
    let mut files = 0;
    let ended = walk.run(root, &ToolboxPath::parse("")?, &mut |met| {
        let wanted = met.kind == FileType::RegularFile
            && met.bytes <= limits::FILE
            && glob.as_ref().is_none_or(|glob| glob.matches(met.path));
        if !wanted {
            return ControlFlow::Continue(());
        }
        let Some(file) = open_regular(met.directory, met.name) else {
            return ControlFlow::Continue(());
        };
        files += 1;
        met.path.clone_into(&mut found.path);
        // A file that cannot be read to its end has no further matches.
        let _ = searcher.search_file(&matcher, &file, &mut found);
        if found.full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let details = ToolOutputDetails::Matches {
        matches: found.matches,
        files,
    };
    let mut output = ToolOutput::new(found.text, TextOrigin::Repository).with(details);
    output.truncated = ended == WalkEnding::Early || found.full;
    Ok(output)
}

fn matcher(pattern: &str, literal: bool) -> Result<RegexMatcher, ToolError> {
    let bad = |why: String| ToolError::Pattern {
        what: "pattern",
        why,
    };
    if pattern.is_empty() {
        return Err(bad("it is empty".to_owned()));
    }
    if pattern.len() > limits::PATTERN {
        return Err(bad(format!("it is longer than {} bytes", limits::PATTERN)));
    }
    RegexMatcherBuilder::new()
        .fixed_strings(literal)
        .line_terminator(Some(b'\n'))
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(100)
        .build(pattern)
        .map_err(|error| bad(error.to_string()))
}

struct MatchCollector {
    path: String,
    matches: Vec<SearchMatch>,
    text: String,
    full: bool,
    deadline: Instant,
}

impl Sink for MatchCollector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let late = Instant::now() >= self.deadline;
        if late || self.matches.len() >= limits::MATCHES || self.text.len() > limits::TEXT {
            self.full = true;
            return Ok(false);
        }
        let line = String::from_utf8_lossy(found.bytes());
        let line = cut(line.trim_end_matches(['\n', '\r']), limits::MATCH_LINE);
        let number = found.line_number().unwrap_or(0);
        let _ = writeln!(self.text, "{}:{number}:{line}", self.path);
        self.matches.push(SearchMatch {
            path: self.path.clone(),
            line: number,
            text: line.to_owned(),
        });
        Ok(true)
    }
}
