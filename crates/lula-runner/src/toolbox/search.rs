//! Searching file contents.
//!
//! Lines stand below the path of their file, which is told once: in an answer with context it would
//! otherwise be a good part of what a model reads, and pays for in every turn after.

use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
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
    let matcher = matcher(asked)?;
    let globs: Vec<WalkGlob> = asked
        .glob
        .iter()
        .chain(&asked.globs)
        .map(|glob| WalkGlob::parse(glob))
        .collect::<Result<_, _>>()?;
    let context = asked.context.unwrap_or(0).min(limits::CONTEXT) as usize;
    let context = if asked.count { 0 } else { context };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(16 << 20))
        .build();
    let walk = DirectoryWalk::new(None);
    let mut found = MatchCollector {
        path: String::new(),
        is_headed: false,
        counts: asked.count,
        in_file: 0,
        matches: Vec::new(),
        text: String::new(),
        left_out: 0,
        late: false,
        deadline: walk.deadline,
    };
    let mut files = 0;
    let ended = walk.run(root, &ToolboxPath::parse("")?, &mut |met| {
        let wanted = met.kind == FileType::RegularFile
            && met.bytes <= limits::FILE
            && (globs.is_empty() || globs.iter().any(|glob| glob.matches(met.path)));
        if !wanted {
            return ControlFlow::Continue(());
        }
        let Some(file) = open_regular(met.directory, met.name) else {
            return ControlFlow::Continue(());
        };
        files += 1;
        met.path.clone_into(&mut found.path);
        found.is_headed = false;
        // A file that cannot be read to its end has no further matches.
        let _ = searcher.search_file(&matcher, &file, &mut found);
        found.end_of_file();
        if found.late {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let details = ToolOutputDetails::Matches {
        matches: found.matches,
        files,
        left_out: found.left_out,
    };
    let mut output = ToolOutput::new(found.text, TextOrigin::Repository).with(details);
    output.truncated = ended == WalkEnding::Early || found.late || found.left_out > 0;
    Ok(output)
}

fn matcher(asked: &SearchFiles) -> Result<RegexMatcher, ToolError> {
    let pattern = &asked.pattern;
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
        .fixed_strings(asked.literal)
        .case_insensitive(asked.ignore_case)
        .line_terminator(Some(b'\n'))
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(100)
        .build(pattern)
        .map_err(|error| bad(error.to_string()))
}

struct MatchCollector {
    path: String,
    /// Whether the path stands above the lines of the file that is searched.
    is_headed: bool,
    /// Whether lines are only counted.
    counts: bool,
    /// Lines that match in the file that is searched.
    in_file: u64,
    matches: Vec<SearchMatch>,
    text: String,
    /// Lines that match and are not told.
    left_out: u64,
    /// Whether the time ran out.
    late: bool,
    deadline: Instant,
}

impl MatchCollector {
    fn is_full(&self) -> bool {
        self.matches.len() >= limits::MATCHES || self.text.len() > limits::TEXT
    }

    /// Tells how many lines of a file matched, where that is what is wanted.
    fn end_of_file(&mut self) {
        let count = std::mem::take(&mut self.in_file);
        if count == 0 || !self.counts {
            return;
        }
        if self.is_full() {
            self.left_out += count;
        } else {
            let _ = writeln!(self.text, "{}:{count}", self.path);
        }
    }

    /// Shows a line below the path of its file.
    fn show(&mut self, number: Option<u64>, sign: char, line: &str) {
        if !self.is_headed {
            self.is_headed = true;
            let between = if self.text.is_empty() { "" } else { "\n" };
            let _ = writeln!(self.text, "{between}{}", self.path);
        }
        let number = number.unwrap_or(0);
        let _ = writeln!(self.text, "{number}{sign}{line}");
    }

    fn told(bytes: &[u8]) -> String {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let shown = cut(line, limits::MATCH_LINE);
        if shown.len() < line.len() {
            return format!("{shown}[… {} bytes left out …]", line.len() - shown.len());
        }
        shown.to_owned()
    }
}

impl Sink for MatchCollector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if Instant::now() >= self.deadline {
            self.late = true;
            return Ok(false);
        }
        self.in_file += 1;
        if self.counts {
            return Ok(true);
        }
        if self.is_full() {
            self.left_out += 1;
            return Ok(true);
        }
        let line = Self::told(found.bytes());
        self.show(found.line_number(), ':', &line);
        self.matches.push(SearchMatch {
            path: self.path.clone(),
            line: found.line_number().unwrap_or(0),
            text: line,
        });
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !self.is_full() {
            self.show(found.line_number(), '-', &Self::told(found.bytes()));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        // Told before the first line of a file too, where nothing is to be told apart.
        if self.is_headed && !self.is_full() {
            self.text.push_str("--\n");
        }
        Ok(true)
    }
}
