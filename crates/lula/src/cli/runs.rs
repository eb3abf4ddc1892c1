//! The flags of `lula run`, `heal`, `resume` and of the commands that read or end a run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use lula_agents::DeliverMode;

use super::values::parse_duration;

const RUN_HELP: &str = include_str!("help/run.txt");

#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) task: TaskText,
    /// Repository, or a folder of it, instead of the one around this directory. Repeat it with
    /// --agents to change several repositories: all of them get a branch or none does
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Vec<PathBuf>,
    /// Treat the task as a repair: the tests it names, or all failing tests, must pass. Without this
    /// flag a task is a repair only if it says nothing else, such as 'fix the failing tests'
    #[arg(long)]
    pub(crate) repair: bool,
    /// Test command, instead of the detected one
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// Shell command that must succeed when the task is done; repeatable. With several repositories
    /// it applies to each, or to one: 'NAME: CMD'
    #[arg(long, value_name = "CMD")]
    pub(crate) accept: Vec<String>,
    /// Shell command that finishes the change after the edits, such as a formatter; repeatable. One
    /// that fails makes the attempt fail. Replaces run.finish; 'NAME: CMD' as for --accept
    #[arg(long, value_name = "CMD")]
    pub(crate) finish: Vec<String>,
    /// Model to use; repeatable, the preferred one first
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Vec<String>,
    /// How much models think before they answer, instead of models.effort
    #[arg(long, value_name = "EFFORT", value_parser = ["default", "low", "medium", "high"])]
    pub(crate) effort: Option<String>,
    /// Model that rates the change of another model if the run is unsure; repeatable, two are asked
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Vec<String>,
    /// Whether a model plans first; `auto` decides by the text of the task
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) lane: LaneChoice,
    /// Let a model split the task into steps and up to N agents work on them in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) agents: Option<u32>,
    /// Print the plan for the agents and stop
    #[arg(long, requires = "agents")]
    pub(crate) plan_only: bool,
    /// Start no further step after the first one that fails
    #[arg(long, requires = "agents")]
    pub(crate) fail_fast: bool,
    /// Deliver one commit for all steps instead of one for each
    #[arg(long, requires = "agents")]
    pub(crate) squash: bool,
    /// Let N agents try the whole task in parallel, with different models or temperatures, and take
    /// the best candidate: by tests, then by the new tests of the others, then confidence, then the
    /// smaller change
    #[arg(long, value_name = "N", conflicts_with = "agents",
        value_parser = clap::value_parser!(u32).range(2..=5))]
    pub(crate) best_of: Option<u32>,
    /// What writes the change: search, a model, or search first
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) coder: CoderFlag,
    /// How to deliver the change
    #[arg(long, value_enum, default_value = "branch")]
    pub(crate) deliver: DeliverFlag,
    /// How approvals are answered
    #[arg(long, value_enum)]
    pub(crate) approve: Option<ApproveMode>,
    /// Start the run in the background and print its id
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Maximum number of retries after a failed attempt
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_loops: u32,
    /// Maximum number of model turns in one attempt
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) max_turns: u32,
    /// Time limit for the search before a model is asked, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) search: Option<Duration>,
}

impl RunFlags {
    /// A task with the default of every flag.
    pub(crate) fn of_task(task: &str) -> Self {
        Self {
            task: TaskText::from(task),
            repo: Vec::new(),
            repair: false,
            tests: None,
            accept: Vec::new(),
            finish: Vec::new(),
            model: Vec::new(),
            effort: None,
            judge: Vec::new(),
            lane: LaneChoice::Auto,
            agents: None,
            plan_only: false,
            fail_fast: false,
            squash: false,
            best_of: None,
            coder: CoderFlag::Auto,
            deliver: DeliverFlag::Branch,
            approve: None,
            detach: false,
            limits: LimitFlags::default(),
            max_loops: 3,
            max_turns: 40,
            search: None,
        }
    }
}

/// The task, as an argument or as the value of `--task`: exactly one of the two.
#[derive(Debug, Args)]
pub(crate) struct TaskText {
    /// What to do, in your own words, as one quoted argument
    #[arg(
        value_name = "TASK",
        required_unless_present = "task",
        conflicts_with = "task"
    )]
    argument: Option<String>,
    /// What to do; the same as the argument TASK
    #[arg(id = "task", long = "task", short = 't', value_name = "TEXT")]
    flag: Option<String>,
}

impl TaskText {
    pub(crate) fn text(&self) -> &str {
        let given = self.argument.as_deref().or(self.flag.as_deref());
        given.unwrap_or_default()
    }
}

impl From<&str> for TaskText {
    fn from(text: &str) -> Self {
        Self {
            argument: Some(text.to_owned()),
            flag: None,
        }
    }
}

const HEAL_HELP: &str = include_str!("help/heal.txt");

#[derive(Debug, Args)]
#[command(after_help = HEAL_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct HealFlags {
    /// Check every new commit until Ctrl-C
    #[arg(long, conflicts_with = "history")]
    pub(crate) watch: bool,
    /// Command that must succeed, instead of the detected tests
    #[arg(long, value_name = "CMD")]
    pub(crate) cmd: Option<String>,
    /// How often to look for a new commit, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) interval: Option<Duration>,
    /// Show past breakages and what was done about each
    #[arg(long)]
    pub(crate) history: bool,
    /// Start a run even if this breakage already had one
    #[arg(long)]
    pub(crate) again: bool,
    /// Repository, instead of the one around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Model to use; repeatable, the preferred one first
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Vec<String>,
    /// How to deliver the change
    #[arg(long, value_enum, default_value = "branch")]
    pub(crate) deliver: DeliverFlag,
    /// How approvals are answered
    #[arg(long, value_enum)]
    pub(crate) approve: Option<ApproveMode>,
    /// Maximum number of runs started per hour
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) max_per_hour: u32,
    /// Maximum cost of models per day, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(crate) budget_per_day: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Maximum number of retries after a failed attempt
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_loops: u32,
    /// Time limit for the search before a model is asked, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) search: Option<Duration>,
    /// Internal: started by `lula heal --watch`
    #[arg(long, hide = true)]
    pub(crate) watched: bool,
}

/// What a run may spend.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitFlags {
    /// Maximum cost of models, in US dollars, such as 0.50
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(crate) budget: Option<u64>,
    /// Maximum number of model requests
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,
    /// Maximum number of output tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after this time, such as 10m; the run can be resumed
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,
}

/// Whether a model plans first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaneChoice {
    /// Plan first only if the task asks for several things
    Auto,
    /// No plan
    Interactive,
    /// A model makes a plan first
    #[value(alias = "deep_planning", alias = "deep-planning")]
    Deep,
}

/// How approvals are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveMode {
    /// Ask you, at the terminal or through `lula approve`; also before the delivery
    Ask,
    /// Approve in advance, on record: the delivery, and what rules ask about inside the workspace if
    /// your rules file says `[approval] beforehand = "tree"`. Whatever leaves the workspace against
    /// a rule still needs `lula approve`
    Auto,
    /// Ask before the delivery unless the run is confident, which takes 50 earlier decisions
    Unsure,
}

/// What writes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoderFlag {
    /// Search if tests fail, then a model
    Auto,
    /// Search only
    Repairer,
    /// Models only
    Model,
}

/// How a change is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeliverFlag {
    /// Create a branch lula/… in the repository
    Branch,
    /// Change files of your checkout, if those files have no uncommitted changes
    Worktree,
    /// Print a patch for `git apply`
    Patch,
    /// Do not deliver
    None,
}

impl DeliverFlag {
    /// What becomes of the change.
    pub(crate) const fn mode(self) -> DeliverMode {
        match self {
            Self::Branch => DeliverMode::Branch,
            Self::Worktree => DeliverMode::Worktree,
            Self::Patch => DeliverMode::Patch,
            Self::None => DeliverMode::None,
        }
    }
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
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Your choice, if the run waits for one; `lula show RUN` lists the choices
    #[arg(long, value_name = "CHOICE")]
    pub(crate) answer: Option<String>,
    /// How approvals are answered
    #[arg(long, value_enum)]
    pub(crate) approve: Option<ApproveMode>,
    /// Resume in the background
    #[arg(long)]
    pub(crate) detach: bool,
    /// Internal: this process is the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ShowFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Show the run as it was after its first N events
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "With --json each event is one JSON document per line.\n\nExamples:\n  lula logs last\n  lula logs -f last\n  lula logs last --json | jq -r .event"
)]
pub(crate) struct LogsFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Follow until the run ends, even if another process drives it
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Reason, for the log
    #[arg(long, value_name = "TEXT", default_value = "no longer wanted")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The model reads the note with its next turn, even if another process drives the run; later attempts\nsee it too. With agents, every agent at work and every later one reads it, or those of one step.\nA note grants no permission.\n\nExamples:\n  lula steer last 'leave the public interface as it is'\n  lula steer last --task parser 'numbers may have underscores'"
)]
pub(crate) struct SteerFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The note
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Step of the plan whose agents read it, instead of all
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula trace last\n  lula trace last --html run.html && xdg-open run.html"
)]
pub(crate) struct TraceFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write a self-contained HTML page that loads nothing from a network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write an SVG timeline with one lane per agent
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Send the trace to this collector by OTLP over HTTP, such as <http://127.0.0.1:4318>
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Derive every event again and compare; exit status 1 if one differs
    #[arg(long, required = true)]
    pub(crate) verify: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lula fork last --at 12 --set 'task=fix only the parser'\n\nThe new run waits; `lula resume` starts it."
)]
pub(crate) struct ForkFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Keep the first N events; no step may be in progress there
    #[arg(long, value_name = "N")]
    pub(crate) at: u64,
    /// Override a value: task=TEXT or model=NAME; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// Run id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Back up the run store into one file
    Backup {
        /// Backup file; must not exist
        file: PathBuf,
    },
    /// Restore a backup; the current store is kept beside it
    Restore {
        /// Backup file
        file: PathBuf,
    },
    /// Check every log and every stored value
    Check,
    /// Drop large values of old runs; every event is kept
    #[command(
        after_help = "Drops large inputs of old, finished runs: files they read, answers of models, output of commands.\nKeeps every event, the task, decisions, notes and approvals of people, and effects outside.\nAfterwards `lula show`, `lula fork` and `lula verify` still work; `lula replay --verify` reports what\nit can no longer derive.\n\nExample:\n  lula store compact --older-than 90d"
    )]
    Compact {
        /// Minimum time since the run ended, such as 90d or 12h
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_age)]
        older_than: Duration,
    },
    /// Copy every run from one store to another
    #[command(
        after_help = "Example:\n  lula store migrate --from runs.db --to env:LULA_POSTGRES\n\nStop every process that uses the source store first."
    )]
    Migrate {
        /// Source store: a file, a URL, or a reference such as env:NAME
        #[arg(long, value_name = "URL")]
        from: String,
        /// Target store: a file, a URL, or a reference such as env:NAME
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

/// A duration that may be counted in days.
fn parse_age(text: &str) -> Result<Duration, String> {
    lula_protocol::units::parse_duration(text)
        .ok_or_else(|| "expected a time such as 90d, 12h, 30m or 0s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{RunFlags, parse_age, parse_usd};
    use clap::{Args as _, FromArgMatches as _};
    use std::time::Duration;

    #[test]
    fn a_task_is_an_argument_or_a_flag_and_never_both() {
        let read = |line: &[&str]| {
            let matches = RunFlags::augment_args(clap::Command::new("run"))
                .try_get_matches_from(["run"].iter().chain(line))?;
            let flags = RunFlags::from_arg_matches(&matches)?;
            Ok::<_, clap::Error>(flags.task.text().to_owned())
        };
        for line in [
            &["fix the tests"][..],
            &["--task", "fix the tests"],
            &["-t", "fix the tests"],
            &[
                "--agents",
                "2",
                "fix the tests",
                "--repo",
                "a",
                "--repo",
                "b",
            ],
        ] {
            assert_eq!(read(line).unwrap(), "fix the tests", "{line:?}");
        }
        let both = read(&["fix the tests", "--task", "fix the tests"]).unwrap_err();
        assert_eq!(both.kind(), clap::error::ErrorKind::ArgumentConflict);
        let none = read(&[]).unwrap_err();
        assert_eq!(none.kind(), clap::error::ErrorKind::MissingRequiredArgument);
        assert!(none.to_string().contains("<TASK>"), "{none}");
    }

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
