//! Reporters that a project's own test command is made to carry, through its environment.
//!
//! They stand in a private folder among the fork's temporary files and append one line of JSON for
//! each thing that happens to a report there, which is read back by a command of its own: nothing that
//! a test prints can be taken for a result, and what was told before a run was ended is not lost.

mod line;

use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) use line::{Begun, Line, lines_of_ranges};

use super::{SuiteError, nonce};
use crate::ground::{Command, Fork, Ran};
use crate::report::{Outcome, TestCase, TestReport};

const PYTEST: &str = concat!(
    include_str!("../python/cover.py"),
    "\n\n",
    include_str!("../python/report.py")
);

/// The files of the reporters, with what each holds. The plugin's name carries a word of its own.
const FILES: [(&str, &str); 6] = [
    ("PLUGIN.py", PYTEST),
    ("lula_hook.cjs", include_str!("hook.cjs")),
    ("lula_jest.cjs", include_str!("jest.cjs")),
    ("lula_vitest.mjs", include_str!("vitest.mjs")),
    ("lula_cover.cjs", include_str!("cover.cjs")),
    ("lula_node_test.mjs", include_str!("node_test.mjs")),
];

/// How long the small commands around a run may take.
const MOMENT: Duration = Duration::from_secs(20);
/// How much of a report is read at once, to stay below what a ground keeps of an output.
const CHUNK: usize = 1 << 20;
/// The longest report that is read.
const LONGEST: usize = 256 << 20;

/// What the reporters are told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// After how long a test is ended and run by itself; none for no limit.
    pub(crate) test_limit: Option<Duration>,
    /// Whether lines are wanted.
    pub(crate) cover: bool,
    /// Tests that are not run again.
    pub(crate) skip: Vec<String>,
    /// The only tests to run, for runners that are told which by their reporter; empty for all.
    pub(crate) only: Vec<String>,
    /// Whether node's own runner may be told by options; not where the command has such options.
    pub(crate) node_test: bool,
    /// Packages of the project, to be asked where they come from.
    pub(crate) packages: Vec<String>,
}

/// What a command did, by its own account and by that of the reporters.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) ran: Ran,
    pub(crate) lines: Vec<Line>,
    /// What the process was doing when a test took too long.
    pub(crate) hung_at: String,
}

/// Runs a command with reporters in its environment.
pub(crate) fn run(
    fork: &mut dyn Fork,
    command: &Command,
    wishes: &Wishes,
) -> Result<Reported, SuiteError> {
    let place = Place::make(fork, wishes)?;
    let mut carrying = command.clone();
    for (name, value) in place.environment(command, &fork.root(), wishes) {
        carrying.env.retain(|(known, _)| *known != name);
        carrying.env.push((name, value));
    }
    let ran = fork.run(&carrying);
    let lines = place.read(fork);
    let hung_at = place
        .text(fork, "report.hung")
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let _ = fork.run(&Command::new(["rm", "-rf", &place.folder], MOMENT));
    Ok(Reported {
        ran: ran?,
        lines: lines?,
        hung_at,
    })
}

/// The private folder of one run.
struct Place {
    folder: String,
    plugin: String,
}

impl Place {
    fn make(fork: &mut dyn Fork, wishes: &Wishes) -> Result<Self, SuiteError> {
        let plugin = format!("lula_report_{}", nonce());
        // One stream, cut at lines that name the file that follows.
        let mark = format!("--{}--", nonce());
        let script = "set -e; d=$(mktemp -d \"${TMPDIR:-/tmp}/lula-XXXXXXXXXX\"); cd \"$d\"; awk -v mark=\"$1\" 'index($0, mark) == 1 { out = substr($0, length(mark) + 1); next } { print > out }'; printf '%s' \"$d\"";
        let mut text = String::new();
        for (name, body) in FILES {
            let name = name.replace("PLUGIN", &plugin);
            text.extend([&mark, name.as_str(), "\n", body.trim_end(), "\n"]);
        }
        let skip = serde_json::to_string(&wishes.skip).unwrap_or_default();
        let only = serde_json::to_string(&wishes.only).unwrap_or_default();
        text.extend([&mark, "skip\n", &skip, "\n", &mark, "only\n", &only, "\n"]);
        let ran = fork.run(
            &Command::new(["sh", "-c", script, "sh", &mark], MOMENT).stdin(text.into_bytes()),
        )?;
        let folder = ran.out();
        if ran.exit != Some(0) || !folder.starts_with('/') {
            return Err(SuiteError::NoResults(format!(
                "no place for a report could be made: {}",
                ran.err().trim()
            )));
        }
        Ok(Self { folder, plugin })
    }

    fn environment(&self, command: &Command, root: &str, wishes: &Wishes) -> Vec<(String, String)> {
        let given = |name: &str| {
            let found = command.env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let joined = |name: &str, first: &str, between: &str| {
            let rest = given(name);
            if rest.is_empty() {
                first.to_owned()
            } else {
                format!("{first}{between}{rest}")
            }
        };
        let mut all = vec![
            ("LULA_REPORT".to_owned(), format!("{}/report", self.folder)),
            ("LULA_FOLDER".to_owned(), self.folder.clone()),
            ("LULA_ROOT".to_owned(), root.to_owned()),
            ("LULA_NAMES".to_owned(), wishes.packages.join(",")),
            ("LULA_PYTHONPATH".to_owned(), given("PYTHONPATH")),
            (
                "PYTHONPATH".to_owned(),
                joined("PYTHONPATH", &self.folder, ":"),
            ),
            (
                "PYTEST_PLUGINS".to_owned(),
                joined("PYTEST_PLUGINS", &self.plugin, ","),
            ),
        ];
        let hook = format!("--require {}/lula_hook.cjs", self.folder);
        let node = if wishes.node_test {
            format!(
                "{hook} --test-reporter=spec --test-reporter-destination=stdout \
                 --test-reporter={f}/lula_node_test.mjs --test-reporter-destination=/dev/null",
                f = self.folder
            )
        } else {
            hook
        };
        all.push(("LULA_NODE_OPTIONS".to_owned(), given("NODE_OPTIONS")));
        all.push((
            "NODE_OPTIONS".to_owned(),
            joined("NODE_OPTIONS", &node, " "),
        ));
        if let Some(limit) = wishes.test_limit {
            all.push((
                "LULA_TEST_SECONDS".to_owned(),
                limit.as_secs_f64().to_string(),
            ));
        }
        if wishes.cover {
            all.push(("LULA_COVER".to_owned(), "1".to_owned()));
        }
        all
    }

    fn read(&self, fork: &mut dyn Fork) -> Result<Vec<Line>, SuiteError> {
        let bytes = self.text(fork, "report")?;
        // A line that was cut off says nothing.
        Ok(String::from_utf8_lossy(&bytes)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    fn text(&self, fork: &mut dyn Fork, name: &str) -> Result<Vec<u8>, SuiteError> {
        let path = format!("{}/{name}", self.folder);
        let mut bytes = Vec::new();
        while bytes.len() < LONGEST {
            let script = "[ -e \"$1\" ] || exit 0; tail -c +\"$2\" \"$1\" | head -c \"$3\"";
            let from = (bytes.len() + 1).to_string();
            let most = CHUNK.to_string();
            let ran = fork.run(&Command::new(
                ["sh", "-c", script, "sh", &path, &from, &most],
                MOMENT,
            ))?;
            let done = ran.stdout.len() < CHUNK;
            bytes.extend(ran.stdout);
            if done {
                break;
            }
        }
        Ok(bytes)
    }
}

impl Reported {
    /// What the first runner said of itself.
    pub(crate) fn begun(&self) -> Option<&Begun> {
        self.lines.iter().find_map(|line| match line {
            Line::Begin(begun) => Some(begun),
            _ => None,
        })
    }

    /// Whether every runner that began also ended.
    pub(crate) fn finished(&self) -> bool {
        let count = |wanted: fn(&Line) -> bool| self.lines.iter().filter(|l| wanted(l)).count();
        let began = count(|line| matches!(line, Line::Begin(_)));
        began > 0 && began <= count(|line| matches!(line, Line::End { .. }))
    }

    /// Every test with the worst that was said of it, in the order of their appearance. pytest's names
    /// are all different and it tells each step of a test; the others tell each test once, so the same
    /// name again is another test of that name.
    pub(crate) fn tests(&self) -> TestReport {
        if self.begun().is_some_and(|begun| begun.runner != "pytest") {
            return self.told_once();
        }
        let mut order: Vec<TestCase> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let rank = |outcome: Outcome| match outcome {
            Outcome::Passed => 0,
            Outcome::Skipped => 1,
            Outcome::Failed => 2,
            Outcome::Broken => 3,
        };
        for line in &self.lines {
            let Line::Test(test) = line else { continue };
            if let Some(&at) = known.get(test.id.as_str()) {
                if rank(test.outcome) > rank(order[at].outcome) {
                    order[at].outcome = test.outcome;
                    order[at].message.clone_from(&test.message);
                }
            } else {
                known.insert(&test.id, order.len());
                order.push(TestCase {
                    id: test.id.clone(),
                    outcome: test.outcome,
                    message: test.message.clone(),
                });
            }
        }
        TestReport { tests: order }
    }

    fn told_once(&self) -> TestReport {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let told = self.lines.iter().filter_map(|line| match line {
            Line::Test(test) => Some(test),
            _ => None,
        });
        let tests = told.map(|test| {
            let count = seen.entry(&test.id).or_default();
            *count += 1;
            TestCase {
                id: numbered(&test.id, *count),
                outcome: test.outcome,
                message: test.message.clone(),
            }
        });
        TestReport {
            tests: tests.collect(),
        }
    }

    /// The test that was running at the end, if one was.
    pub(crate) fn running(&self) -> Option<&str> {
        let mut running = None;
        for line in &self.lines {
            match line {
                Line::Start { id } => running = Some(id.as_str()),
                Line::Done { id } if running == Some(id.as_str()) => running = None,
                Line::End { .. } => running = None,
                _ => {}
            }
        }
        running
    }

    /// The end of what was printed, as a person would read it.
    pub(crate) fn printed(&self) -> String {
        printed(&self.ran)
    }
}

/// The name of a test that has the same name as others before it.
fn numbered(id: &str, count: usize) -> String {
    match count {
        0 | 1 => id.to_owned(),
        _ => format!("{id} #{count}"),
    }
}

/// The name that the runner itself has for a test.
pub(crate) fn unnumbered(id: &str) -> &str {
    match id.rsplit_once(" #") {
        Some((name, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => id,
    }
}

/// The end of what a command printed, its errors last.
pub(crate) fn printed(ran: &Ran) -> String {
    let text = format!("{}\n{}", ran.out().trim_end(), ran.err().trim_end());
    crate::trial::tail(text.trim(), 4000).to_owned()
}
