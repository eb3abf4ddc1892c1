//! The flags of everything that is about runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::values::parse_duration;

const RUN_HELP: &str = "\
The task is worked on in a private copy of the commit that is checked out; your checkout, index,
stash and untracked files are not touched (only `--deliver worktree` changes files of the checkout). Failing tests are mended by search, with no model;
everything else needs one. The change is judged by tests, never by what a model says.

Examples:
  lula run --task 'fix the failing tests'
  lula run --task 'add a --verbose flag' --model ollama/qwen2.5-coder:7b --accept './cli --verbose'
  lula run --task 'speed up the parser' --model anthropic/claude-sonnet-4-5 --budget 0.50
  lula run --task 'fix the failing tests' --approve ask --deliver worktree
  lula run --task 'port it to Python 3' --detach && lula logs -f last
  lula run --task 'add a cache, document it, and test it' --agents 3 --plan-only
  lula run --task 'make the parser faster' --best-of 3 --model ollama/a --model ollama/b
  lula run --task 'rename the field in both' --agents 2 --repo server --repo client

In a folder of a larger repository that is a project of its own, and with --repo FOLDER, the tests
are those of that folder, and --tests and --accept are run there.

What failed before is not held against a change; a test that fails with it and did not before always
is. An --accept command is run before anything is done and with the change: it proves only what it did
not do before.

Ctrl-C once finishes the step under way and puts the run down, twice does it at once; `lula resume`
goes on in both cases.

Exit status: 0 verified, 1 failed, 2 usage, 3 waiting for approval, 4 budget or time,
5 not verified (delivered as such) or nothing to do, 6 this machine cannot do it as it is.";

#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunFlags {
    /// What is to be done
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) task: String,
    /// The repository or a folder of it, instead of the one around this directory; with --agents it
    /// may be given several times, and all of them get a branch or none does
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Vec<PathBuf>,
    /// The task is failing tests that are to pass: those it names, or all that fail. Without it that
    /// is so only where the task says nothing else, as 'fix the failing tests' does
    #[arg(long)]
    pub(crate) repair: bool,
    /// The command that runs the tests, instead of the one detected
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// A shell command that must succeed when the task is done; may be given several times. With
    /// several repositories it must in each, or in one: 'NAME: CMD'
    #[arg(long, value_name = "CMD")]
    pub(crate) accept: Vec<String>,
    /// A model to ask, the preferred one first; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Vec<String>,
    /// A model that rates changes of others where a run is unsure; may be given twice
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Vec<String>,
    /// How the task is worked on, instead of as its words suggest
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) lane: LaneChoice,
    /// Let a model cut the task into several, and so many agents work on them at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) agents: Option<u32>,
    /// Make the plan for the agents, print it, and begin nothing
    #[arg(long, requires = "agents")]
    pub(crate) plan_only: bool,
    /// Begin nothing more after the first task that fails
    #[arg(long, requires = "agents")]
    pub(crate) fail_fast: bool,
    /// Let so many agents try the task at once, by different models or with different
    /// temperatures, and take the best: by tests, then confidence, then the smaller change
    #[arg(long, value_name = "N", conflicts_with = "agents",
        value_parser = clap::value_parser!(u32).range(2..=5))]
    pub(crate) best_of: Option<u32>,
    /// Who writes the change
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) coder: Coder,
    /// What becomes of the change
    #[arg(long, value_enum, default_value = "branch")]
    pub(crate) deliver: Deliver,
    /// Who answers what the run asks
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// Begin the run, tell its id, and let it work in the background
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// How often a failed attempt is followed by another
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_loops: u32,
    /// How often a model may act in one attempt
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) max_turns: u32,
    /// How long to search for a patch before a model is asked, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) search: Option<Duration>,
}

impl RunFlags {
    /// A task with everything else as usual.
    pub(crate) fn of_task(task: &str) -> Self {
        Self {
            task: task.to_owned(),
            repo: Vec::new(),
            repair: false,
            tests: None,
            accept: Vec::new(),
            model: Vec::new(),
            judge: Vec::new(),
            lane: LaneChoice::Auto,
            agents: None,
            plan_only: false,
            fail_fast: false,
            best_of: None,
            coder: Coder::Auto,
            deliver: Deliver::Branch,
            approve: None,
            detach: false,
            limits: LimitFlags::default(),
            max_loops: 3,
            max_turns: 40,
            search: None,
        }
    }
}

const HEAL_HELP: &str = "\
The tests of the commit that is checked out, or the command, are run in a private copy, in the
sandbox. Where they fail a run is begun, as by `lula run`: the change is verified, and waits on a
branch of its own. The same breakage is worked on once until it was gone, whatever else happens;
what is remembered survives restarts and lies in runs/heal of the state directory. Where nothing is
broken nothing is printed.

Examples:
  lula heal
  lula heal --watch --interval 1m
  lula heal --cmd 'make ci' --model anthropic/claude-sonnet-4-5 --budget 0.50 --budget-per-day 5
  lula heal --history

With --watch each commit is looked at once; Ctrl-C once finishes the step under way and ends it.

Exit status: 0 green, or broken and mended by a verified change; 1 broken and not mended,
3 waiting for approval, 4 a limit is reached, 5 flaky or interrupted, 6 the tests cannot run. With
--watch that of the last look.";

#[derive(Debug, Args)]
#[command(after_help = HEAL_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct HealFlags {
    /// Look again whenever there is another commit, until Ctrl-C
    #[arg(long, conflicts_with = "history")]
    pub(crate) watch: bool,
    /// The command that must succeed, instead of the tests detected
    #[arg(long, value_name = "CMD")]
    pub(crate) cmd: Option<String>,
    /// How often to look for another commit, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) interval: Option<Duration>,
    /// Show what broke here and what came of it
    #[arg(long)]
    pub(crate) history: bool,
    /// Begin a run also for a breakage that was worked on already
    #[arg(long)]
    pub(crate) again: bool,
    /// The repository, instead of the one around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// A model to ask, the preferred one first; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Vec<String>,
    /// What becomes of a change
    #[arg(long, value_enum, default_value = "branch")]
    pub(crate) deliver: Deliver,
    /// Ask before a change is delivered, or answer that question with yes
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// Most runs begun within an hour
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) max_per_hour: u32,
    /// Most money for models within a day, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(crate) budget_per_day: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// How often a failed attempt is followed by another
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_loops: u32,
    /// How long to search for a patch before a model is asked, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) search: Option<Duration>,
    /// Another process watches
    #[arg(long, hide = true)]
    pub(crate) watched: bool,
}

/// What a run may spend.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitFlags {
    /// Most money for models, in US dollars, such as 0.50
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(crate) budget: Option<u64>,
    /// Most requests to models
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,
    /// Most tokens that models write
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// How long to work now, such as 10m; then the run can be resumed
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,
}

/// How a task is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneChoice {
    /// At once for one thing, with a plan for several
    Auto,
    /// One attempt after the other, no plan
    Interactive,
    /// A model makes a plan first
    #[value(alias = "deep_planning", alias = "deep-planning")]
    Deep,
}

/// Who answers what a run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// You, at the terminal or with `lula approve`; also before the change is delivered
    Ask,
    /// You, with yes, beforehand, on record: for delivery, and for what rules ask about inside the
    /// workspace if your rules file says `[approval] beforehand = "tree"`. What leaves the workspace
    /// against a rule is for `lula approve` all the same
    Auto,
    /// Before delivery unless the run is sure of its change, which takes 50 decisions of yours
    Unsure,
}

/// Who writes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Coder {
    /// Search where tests fail, then a model
    Auto,
    /// Only search
    Repairer,
    /// Only models
    Model,
}

/// What becomes of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deliver {
    /// A new branch lula/… of the repository
    Branch,
    /// The files of your checkout, if those it touches are as they were committed
    Worktree,
    /// Only printed, for `git apply`
    Patch,
    /// Nothing
    None,
}

fn parse_usd(text: &str) -> Result<u64, String> {
    let wrong = || "expected dollars such as 0.50".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 || (whole.is_empty() && part.is_empty()) {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| wrong())?
    };
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    whole
        .checked_mul(1_000_000)
        .and_then(|micro| micro.checked_add(part))
        .ok_or_else(wrong)
}

#[derive(Debug, Args)]
pub(crate) struct ResumeFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What you choose, where the run waits for a choice; `lula show RUN` says which there are
    #[arg(long, value_name = "CHOICE")]
    pub(crate) answer: Option<String>,
    /// Who answers what the run asks
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// Let it work in the background
    #[arg(long)]
    pub(crate) detach: bool,
    /// This is the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ShowFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// As it was after its first N events
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "With --json every event is one JSON document on a line of its own.\n\nExamples:\n  lula logs last\n  lula logs -f last\n  lula logs last --json | jq -r .event"
)]
pub(crate) struct LogsFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Go on until the run is over, also while another process works on it
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "no longer wanted")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The note reaches the model with its next turn, also while another process drives the run; later\nattempts know it too. Nothing in it is a permission.\n\nExample:\n  lula steer last 'leave the public interface as it is'"
)]
pub(crate) struct SteerFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What whoever works on it should know
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula trace last\n  lula trace last --html run.html && xdg-open run.html"
)]
pub(crate) struct TraceFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write a page for a browser; it asks nothing of any network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Draw the agents beside each other in time
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Derive every event again and compare; exit status 1 where one differs
    #[arg(long, required = true)]
    pub(crate) verify: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lula fork last --at 12 --set 'task=fix only the parser'\n\nThe fork waits; `lula resume` goes on with it."
)]
pub(crate) struct ForkFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// After its first N events, where no step is under way
    #[arg(long, value_name = "N")]
    pub(crate) at: u64,
    /// With something otherwise: task=TEXT or model=NAME
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// The run: its id, the end of it, or last
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy everything that is kept into one file
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Bring a backup back; what is kept now is kept beside it
    Restore {
        /// The file
        file: PathBuf,
    },
    /// Look through every log and everything it names
    Check,
    /// Drop large values of old runs; their logs stay whole
    #[command(
        after_help = "Of a run that is over and old, what it was told on the way is dropped where it is large: files\nit read, answers of models, output of commands. What it was asked, what it decided, what people\nchanged and what it did outside is kept, and so is every event. Afterwards `lula show`, `lula fork`\nand `lula verify` work; `lula replay --verify` says what it cannot derive again.\n\nExample:\n  lula store compact --older-than 90d"
    )]
    Compact {
        /// How long a run must have been over, such as 90d or 12h
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_age)]
        older_than: Duration,
    },
    /// Copy every run from one store into another
    #[command(
        after_help = "Example:\n  lula store migrate --from runs.db --to env:LULA_POSTGRES\n\nNobody may be working on the first one."
    )]
    Migrate {
        /// A file, an address, or a reference to one
        #[arg(long, value_name = "URL")]
        from: String,
        /// A file, an address, or a reference to one
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

/// A duration that may be counted in days.
fn parse_age(text: &str) -> Result<Duration, String> {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*seconds).map(Duration::from_secs)
    });
    read.ok_or_else(|| "expected a time such as 90d, 12h, 30m or 0s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{parse_age, parse_usd};
    use std::time::Duration;

    #[test]
    fn an_age_is_read_in_days_hours_minutes_or_seconds() {
        assert_eq!(parse_age("90d"), Ok(Duration::from_hours(90 * 24)));
        assert_eq!(parse_age("0s"), Ok(Duration::ZERO));
        for wrong in ["", "d", "90", "-1d", "1.5h", "99999999999999999999d", "1 d"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn money_is_read_to_the_millionth() {
        assert_eq!(parse_usd("0.50"), Ok(500_000));
        assert_eq!(parse_usd("2"), Ok(2_000_000));
        assert_eq!(parse_usd(".000001"), Ok(1));
        for wrong in ["", "-1", "1e3", "0.0000001", "$1"] {
            assert!(parse_usd(wrong).is_err(), "{wrong}");
        }
    }
}
