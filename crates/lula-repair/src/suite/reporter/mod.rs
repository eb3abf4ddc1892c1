//! Reporters that a project's own test command is made to carry, through its environment.
//!
//! They stand in a private folder among the fork's temporary files and append one line of JSON for
//! each thing that happens to a report there, which is read back by a command of its own: nothing that
//! a test prints can be taken for a result, and what was told before a run was ended is not lost.

mod line;
mod others;

use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) use line::{ReporterLine, ReporterStart, lines_of_ranges};
pub(crate) use others::ReporterOutput;

use super::{SuiteError, nonce};
use crate::environment::CodeOrigin;
use crate::ground::{ForkCommand, ForkCommandOutput, ProjectFork};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::results;

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
pub(crate) struct ReporterSettings {
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
    /// Whether the command may start a runner of any kind.
    pub(crate) any_runner: bool,
}

/// What a command did, by its own account and by that of the reporters.
#[derive(Debug)]
pub(crate) struct ReportedRun {
    pub(crate) ran: ForkCommandOutput,
    pub(crate) lines: Vec<ReporterLine>,
    /// What runners wrote that have a format of their own.
    pub(crate) written: Vec<ReporterOutput>,
    /// What the process was doing when a test took too long.
    pub(crate) hung_at: String,
}

/// Runs a command with reporters in its environment.
pub(crate) fn run(
    fork: &mut dyn ProjectFork,
    command: &ForkCommand,
    wishes: &ReporterSettings,
) -> Result<ReportedRun, SuiteError> {
    let place = RunFolder::make(fork, &command.folder, wishes)?;
    let mut carrying = command.clone();
    for (name, value) in place.environment(command, &fork.root(), wishes) {
        carrying.env.retain(|(known, _)| *known != name);
        carrying.env.push((name, value));
    }
    let ran = fork.run(&carrying);
    let files = place.take_away(fork, wishes.any_runner);
    let (ran, files) = (ran?, files?);
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    Ok(ReportedRun {
        ran,
        // A line that was cut off says nothing.
        lines: text("report")
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
        written: others::written(&files),
        hung_at: text("report.hung").to_owned(),
    })
}

/// The private folder of one run.
struct RunFolder {
    folder: String,
    plugin: String,
    /// Where programs are looked for without us.
    path: String,
}

impl RunFolder {
    fn make(
        fork: &mut dyn ProjectFork,
        within: &str,
        wishes: &ReporterSettings,
    ) -> Result<Self, SuiteError> {
        let plugin = format!("lula_report_{}", nonce());
        // One stream, cut at lines that name the file that follows.
        let mark = format!("--{}--", nonce());
        let (before, after, more) = if wishes.any_runner {
            (others::BEFORE, others::AFTER, &others::FILES[..])
        } else {
            (":", ":", &[][..])
        };
        let script = format!(
            "set -e; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/lula-XXXXXXXXXX\"); cd \"$d\"; {before}; awk -v mark=\"$1\" 'index($0, mark) == 1 {{ out = substr($0, length(mark) + 1); next }} {{ print > out }}'; {after}; printf '%s\\n%s' \"$d\" \"$PATH\""
        );
        let mut text = String::new();
        for (name, body) in FILES.iter().chain(more) {
            let name = name.replace("PLUGIN", &plugin);
            text.extend([&mark, name.as_str(), "\n", body.trim_end(), "\n"]);
        }
        let skip = serde_json::to_string(&wishes.skip).unwrap_or_default();
        let only = serde_json::to_string(&wishes.only).unwrap_or_default();
        text.extend([&mark, "skip\n", &skip, "\n", &mark, "only\n", &only, "\n"]);
        let ran = fork.run(
            &ForkCommand::new(["sh", "-c", &script, "sh", &mark], MOMENT)
                .in_folder(within)
                .stdin(text.into_bytes()),
        )?;
        let told = ran.out();
        let (folder, path) = told.split_once('\n').unwrap_or((&told, ""));
        if ran.exit != Some(0) || !folder.starts_with('/') {
            return Err(SuiteError::NoResults(format!(
                "no place for a report could be made: {}",
                ran.err().trim()
            )));
        }
        Ok(Self {
            folder: folder.to_owned(),
            plugin,
            path: path.to_owned(),
        })
    }

    fn environment(
        &self,
        command: &ForkCommand,
        root: &str,
        wishes: &ReporterSettings,
    ) -> Vec<(String, String)> {
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
        let modules = if wishes.any_runner {
            format!("{f}/python:{f}", f = self.folder)
        } else {
            self.folder.clone()
        };
        let mut all = vec![
            ("LULA_REPORT".to_owned(), format!("{}/report", self.folder)),
            ("LULA_FOLDER".to_owned(), self.folder.clone()),
            ("LULA_ROOT".to_owned(), root.to_owned()),
            ("LULA_NAMES".to_owned(), wishes.packages.join(",")),
            ("LULA_PYTHONPATH".to_owned(), given("PYTHONPATH")),
            ("PYTHONPATH".to_owned(), joined("PYTHONPATH", &modules, ":")),
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
        all.push(("LULA_NODE_ADDED".to_owned(), node.clone()));
        all.push((
            "NODE_OPTIONS".to_owned(),
            joined("NODE_OPTIONS", &node, " "),
        ));
        if wishes.any_runner {
            all.extend(others::environment(&self.folder, &self.path, &given));
        }
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

    /// Everything that was written, by the names of its files; the folder is gone then. One command does
    /// it, for starting one costs as much as a small test; only a long report takes more.
    fn take_away(
        &self,
        fork: &mut dyn ProjectFork,
        any_runner: bool,
    ) -> Result<BTreeMap<String, String>, SuiteError> {
        // Chosen after the run, so that no test can write it.
        let mark = format!("--{}--", nonce());
        let gather = if any_runner { others::GATHER } else { ":" };
        let script = format!(
            r#"folder=$1 mark=$2 top=$3 most=$4; cd "$folder" || exit 0
{gather}
for file in report report.hung out/*; do [ -e "$file" ] && printf '%s%s\n' "$mark" "$file" && cat "$file" && printf '\n'; done > all
head -c "$most" all
[ "$(wc -c < all)" -ge "$most" ] || {{ cd / && rm -rf "$folder"; }}"#
        );
        let most = CHUNK.to_string();
        let root = fork.root();
        let words = ["sh", "-c", &script, "sh", &self.folder, &mark, &root, &most];
        let mut bytes = fork.run(&ForkCommand::new(words, MOMENT))?.stdout;
        if bytes.len() >= CHUNK {
            self.rest(fork, &mut bytes)?;
            let _ = fork.run(&ForkCommand::new(["rm", "-rf", &self.folder], MOMENT));
        }
        Ok(pieces(&String::from_utf8_lossy(&bytes), &mark))
    }

    fn rest(&self, fork: &mut dyn ProjectFork, bytes: &mut Vec<u8>) -> Result<(), SuiteError> {
        let path = format!("{}/all", self.folder);
        let most = CHUNK.to_string();
        while bytes.len() < LONGEST {
            let script = "tail -c +\"$2\" \"$1\" | head -c \"$3\"";
            let from = (bytes.len() + 1).to_string();
            let words = ["sh", "-c", script, "sh", &path, &from, &most];
            let ran = fork.run(&ForkCommand::new(words, MOMENT))?;
            let done = ran.stdout.len() < CHUNK;
            bytes.extend(ran.stdout);
            if done {
                break;
            }
        }
        Ok(())
    }
}

/// Files by their names, out of one text in which each follows a line of the mark and its name.
fn pieces(text: &str, mark: &str) -> BTreeMap<String, String> {
    let named = |piece: &str| {
        let (name, body) = piece.split_once('\n')?;
        Some((name.to_owned(), body.to_owned()))
    };
    text.split(mark).skip(1).filter_map(named).collect()
}

impl ReportedRun {
    /// What the first runner said of itself.
    pub(crate) fn begun(&self) -> Option<&ReporterStart> {
        self.lines.iter().find_map(|line| match line {
            ReporterLine::Begin(begun) => Some(begun),
            _ => None,
        })
    }

    /// Whether every runner that began also ended.
    pub(crate) fn finished(&self) -> bool {
        let count =
            |wanted: fn(&ReporterLine) -> bool| self.lines.iter().filter(|l| wanted(l)).count();
        let began = count(|line| matches!(line, ReporterLine::Begin(_)));
        began > 0 && began <= count(|line| matches!(line, ReporterLine::End { .. }))
    }

    /// Where packages of the project came from; several processes tell of the same one.
    pub(crate) fn origins(&self) -> Vec<CodeOrigin> {
        let told = self.lines.iter().filter_map(|line| match line {
            ReporterLine::Origins { origins } => Some(origins),
            _ => None,
        });
        let one_each: BTreeMap<&String, &String> = told.flatten().collect();
        let origin = |(name, path): (&String, &String)| CodeOrigin {
            name: name.clone(),
            path: path.clone(),
        };
        one_each.into_iter().map(origin).collect()
    }

    /// Every test with the worst that was said of it, in the order of their appearance. pytest's names
    /// are all different and it tells each step of a test; the others tell each test once, so the same
    /// name again is another test of that name.
    pub(crate) fn tests(&self) -> TestReport {
        if self.begun().is_some_and(|begun| begun.runner != "pytest") {
            return self.case_per_line();
        }
        let mut order: Vec<TestCase> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let rank = |outcome: TestOutcome| match outcome {
            TestOutcome::Passed => 0,
            TestOutcome::Skipped => 1,
            TestOutcome::Failed => 2,
            TestOutcome::Broken => 3,
        };
        for line in &self.lines {
            let ReporterLine::Test(test) = line else {
                continue;
            };
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

    /// The tests of every runner that told of itself, by whatever means.
    pub(crate) fn every(&self) -> Vec<TestCase> {
        let mut written: Vec<TestCase> = self
            .written
            .iter()
            .flat_map(ReporterOutput::tests)
            .collect();
        results::number(&mut written);
        let mut all = self.tests().tests;
        all.extend(written);
        all
    }

    fn case_per_line(&self) -> TestReport {
        let mut tests: Vec<TestCase> = Vec::new();
        let mut printed = String::new();
        for line in &self.lines {
            match line {
                ReporterLine::Test(test) => tests.push(TestCase {
                    id: test.id.clone(),
                    outcome: test.outcome,
                    message: test.message.clone(),
                }),
                ReporterLine::Out { text } => printed.push_str(text),
                _ => {}
            }
        }
        tests.extend(results::tap(&printed));
        results::number(&mut tests);
        TestReport { tests }
    }

    /// The test that was running at the end, if one was.
    pub(crate) fn running(&self) -> Option<&str> {
        let mut running = None;
        for line in &self.lines {
            match line {
                ReporterLine::Start { id } => running = Some(id.as_str()),
                ReporterLine::Done { id } if running == Some(id.as_str()) => running = None,
                ReporterLine::End { .. } => running = None,
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

/// The end of what a command printed, its errors last.
pub(crate) fn printed(ran: &ForkCommandOutput) -> String {
    let text = format!("{}\n{}", ran.out().trim_end(), ran.err().trim_end());
    crate::trial::tail(text.trim(), 4000).to_owned()
}
