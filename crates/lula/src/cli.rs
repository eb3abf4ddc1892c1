//! Every command and flag, in one place. Help, completions and man pages are generated from it;
//! the flags of configuration keys come from the table of keys.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use lula_config::{keys, variables};
use lula_protocol::{Principal, Tier};
use lula_sandbox::policy::Profile;

use crate::cli_runs::{
    Approve, CancelFlags, ExportFlags, ForkFlags, HealFlags, LogsFlags, ReplayFlags, ResumeFlags,
    RunFlags, ShowFlags, SteerFlags, StoreCommand, TraceFlags,
};
use crate::commands::review::flags::{
    CommitFlags, DiffFlags, DiscardFlags, RedoFlags, UndoFlags, WorkspacesFlags,
};
use crate::failure::Failure;

const ABOUT: &str = "Hand a coding task to agents you do not have to trust";

const EXAMPLES: &str = "\
Examples:
  lula try                       see it work on a bundled sample project
  lula run -t 'fix the tests'    hand over a task, get a verified branch
  lula repair                    make this project's failing tests pass
  lula index map --task TEXT     what matters in this project for a task
  lula exec -- pytest -q         run a command in the sandbox; its changes wait for you
  lula diff                      look at them; `lula commit` takes them, `lula discard` not
  lula doctor                    what works on this machine, and why not
  lula doctor --attack           attack the sandbox and see what holds
  lula config explain KEY        which layer a setting comes from
  lula explain L0101             what an error code means

Every configuration key is also a flag: sandbox.timeout is --sandbox-timeout.
Exit status: 0 verified, 1 failed, 2 usage, 3 waiting for approval, 4 budget,
5 inconclusive, 6 this machine cannot do it.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "lula", version, about = ABOUT, after_help = EXAMPLES)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputFlags {
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See the whole story on a bundled sample project
    Try(TryFlags),
    /// Hand over a task: plan, change, verify, deliver
    Run(RunFlags),
    /// Go on with a run that was interrupted or waits
    Resume(ResumeFlags),
    /// List runs
    Runs,
    /// Show a run
    Show(ShowFlags),
    /// Tell what happened in a run, line by line
    Logs(LogsFlags),
    /// Show where the time and the money of a run went, as text or as a page
    Trace(TraceFlags),
    /// Say something to whoever works on a run
    Steer(SteerFlags),
    /// End a run for good
    Cancel(CancelFlags),
    /// Derive a run again from its log
    Replay(ReplayFlags),
    /// Begin another run with the first events of one
    Fork(ForkFlags),
    /// Write everything that was recorded of a run into one file
    Export(ExportFlags),
    /// Check such a file, with nothing but the file
    Verify {
        /// The file
        file: PathBuf,
    },
    /// Look after the place where runs are kept
    #[command(subcommand)]
    Store(StoreCommand),
    /// Make failing tests pass by search, with no model
    Repair(RepairFlags),
    /// Look whether the tests pass, and begin a run where they do not
    Heal(HealFlags),
    /// Tell which tests a project has and how they are run
    Detect,
    /// Show what matters in a project, and where things are defined
    #[command(subcommand)]
    Index(IndexCommand),
    /// Run a command in the sandbox, in this directory
    Exec(ExecFlags),
    /// Show the changes that wait for a decision
    Diff(DiffFlags),
    /// Take waiting changes over into your files
    Commit(CommitFlags),
    /// Turn waiting changes down
    Discard(DiscardFlags),
    /// Take back the last commit, or what a run delivered
    Undo(UndoFlags),
    /// Make an undone commit again
    Redo(RedoFlags),
    /// List workspaces: what waits, what was decided, what it takes
    Workspaces(WorkspacesFlags),
    /// Serve tools in sandboxed workspaces, over HTTP
    Runner(RunnerFlags),
    /// Tell what works on this machine, and why not
    Doctor(DoctorFlags),
    /// Find, try out and choose models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Ask the policy rules, test them, show them
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show what is never done, what a good change looks like, and what that came to
    #[command(subcommand)]
    Guidelines(GuidelinesCommand),
    /// Show or forget what failed attempts showed
    #[command(subcommand)]
    Lessons(LessonsCommand),
    /// Show what waits for an answer
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Agree to exactly what a question shows
    #[command(after_help = ANSWER_HELP)]
    Approve(AnswerFlags),
    /// Say no to a question, for good
    #[command(after_help = ANSWER_HELP)]
    Reject(AnswerFlags),
    /// Check, show or export the record of what was done
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show or change configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Tell what an error code means
    #[command(after_help = "Example:\n  lula explain L0101")]
    Explain {
        /// A code such as L0101; all codes when left out
        code: Option<String>,
    },
    /// Print shell completions
    #[command(
        after_help = "Example:\n  lula completions bash > ~/.local/share/bash-completion/completions/lula"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages
    #[command(after_help = "Example:\n  lula man --dir ~/.local/share/man/man1")]
    Man {
        /// Directory for all pages; without it the main page goes to standard output
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether it only tells what is built in.
    pub(crate) const fn works_without_configuration(&self) -> bool {
        matches!(
            self,
            Self::Explain { .. } | Self::Completions { .. } | Self::Man { .. }
        )
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula doctor\n  lula doctor --attack\n  lula doctor --attack --tier landlock --json\n\nWith --attack the exit status is 1 if a single probe is not held."
)]
pub(crate) struct DoctorFlags {
    /// Attack the sandbox on this machine with every probe there is
    #[arg(long)]
    pub(crate) attack: bool,
    /// The tier to attack, instead of the strongest that works
    #[arg(long, value_name = "NAME", requires = "attack", value_parser = parse_tier)]
    pub(crate) tier: Option<Tier>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A sample project with a real bug is copied to a throw-away git repository and mended there: found,\nfixed in the sandbox, verified, shown, approved, put on a branch, audited, and undone again. With\na model configured (lula models use) the model writes the fix, otherwise the built-in search. Your\nfiles are not touched; the record of the run stays, for `lula show last`."
)]
pub(crate) struct TryFlags {
    /// Leave the sample repository on disk and tell where
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The patch goes to standard output; nothing in your files is changed.\n\nExamples:\n  lula repair\n  lula repair --tests 'pytest -q tests/unit' --budget 5m\n  lula repair -q | git apply\n\nExit status: 0 fixed or nothing failing, 1 no patch exists, 4 none found in the budget,\n5 only flaky tests, 6 tests cannot run."
)]
pub(crate) struct RepairFlags {
    /// The command that runs the tests, instead of the one detected
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// How long to search, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Look for every patch instead of stopping soon after the first
    #[arg(long)]
    pub(crate) all: bool,
    /// The directory to repair, instead of the repository around this one
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

const EXEC_HELP: &str = "\
The command runs in the repository this directory belongs to, or in the directory itself. It sees
that, the system's programs and the toolchains on your PATH, has no network and none of your
variables. It behaves like the command itself: standard input and output, signals, exit status.
What it changes in there is held back: `lula diff` shows it, `lula commit` takes it over.

Examples:
  lula exec -- pytest -q
  lula exec --profile strict --timeout 10s -- ./untrusted.sh
  lula exec --receipt receipt.json -- make test
  lula exec --explain -- ./install.sh
  lula exec --on last -- git diff
  lula exec --write direct -- cargo fmt

Exit status: the command's own; 124 when its time ran out, 125 when the sandbox refused,
126 and 127 when the command cannot be executed or does not exist.";

#[derive(Debug, Args)]
#[command(after_help = EXEC_HELP)]
pub(crate) struct ExecFlags {
    /// Policy to start from: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// A policy of your own, as TOML; a file outside the workspace
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) policy: Option<PathBuf>,
    /// Exactly this tier, or nothing; the only way to get `process`
    #[arg(long, value_name = "NAME", value_parser = parse_tier)]
    pub(crate) tier: Option<Tier>,
    /// What becomes of changes in the workspace
    #[arg(long, value_enum, default_value = "review")]
    pub(crate) write: Write,
    /// Go on in the workspace of that id, with the changes that wait there; `last` is the latest of
    /// this directory
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) on: Option<String>,
    /// Wall clock, such as 90s; never longer than sandbox.timeout
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Write the posture receipt to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Say what was denied and what would grant it; looks at every path the command opens, which
    /// slows it down
    #[arg(long)]
    pub(crate) explain: bool,
    /// The directory to work in, instead of the repository around this one
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const RUNNER_HELP: &str = "\
Workspaces are private views of directories below a root: nothing reaches the directory itself
before a commit of exactly the reviewed change. A Unix socket is for its owner alone; a port needs
a key, from --key-file or $LULA_RUNNER_KEY. `GET /v1/openapi.json` describes the interface.

Examples:
  lula runner --root ~/src
  lula runner --root ~/src --listen unix:/run/user/1000/lula.sock
  lula runner --root /srv/work --listen 0.0.0.0:7420 --key-file /etc/lula/runner.key";

#[derive(Debug, Args)]
#[command(after_help = RUNNER_HELP)]
pub(crate) struct RunnerFlags {
    /// Where to listen: unix:PATH or HOST:PORT; a socket in the state directory when left out
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Workspaces can be opened below this directory; can be given several times
    #[arg(long = "root", value_name = "DIR", required = true)]
    pub(crate) roots: Vec<PathBuf>,
    /// A private file that holds the bearer key of a port
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file of rules that say when to ask, beside the built-in ones; can be given several times
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// auto agrees beforehand to what the rules leave to you (`[approval] beforehand = "tree"`)
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// Policy of the sandboxes to start from: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// End when standard input ends
    #[arg(long, hide = true)]
    pub(crate) with_parent: bool,
    /// Start another one when it dies, until standard input ends
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}

/// What becomes of changes in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Write {
    /// The workspace is read-only
    None,
    /// Changes are held for `lula diff`, `lula commit` and `lula discard`
    Review,
    /// Changes are made in the workspace itself
    Direct,
}

fn parse_profile(text: &str) -> Result<Profile, String> {
    Profile::from_name(text).ok_or_else(|| "expected strict, build or browser".to_owned())
}

fn parse_tier(text: &str) -> Result<Tier, String> {
    let names = || Tier::ALL.map(Tier::name).join(", ");
    Tier::from_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let kind = keys::SANDBOX_TIMEOUT.spec().kind;
    match kind.parse(text) {
        Some(lula_config::Value::Duration(duration)) => Ok(duration),
        _ => Err(format!("expected {}", kind.expected())),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Print the map of a project: the definitions that matter, within a budget
    #[command(
        after_help = "Definitions are ranked by who uses them, pulled towards the words of the task.\nIgnored files are left out; nothing in the project is changed.\n\nExamples:\n  lula index map\n  lula index map --task 'the discount is applied twice' --tokens 2000\n  lula index map ~/src/project --json"
    )]
    Map {
        /// The project, instead of the repository around this directory
        path: Option<PathBuf>,
        /// What is to be done, in your words
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
        /// Most tokens the map may have, by a careful estimate
        #[arg(long, value_name = "N", default_value_t = 4096)]
        tokens: u64,
    },
    /// Look up where something is defined
    #[command(
        after_help = "Examples:\n  lula index symbols ShoppingCart\n  lula index symbols 'apply discount' --json\n\nExit status: 1 when nothing answers the query."
    )]
    Symbols {
        /// A name, its beginning or words of it; everything when left out
        query: Option<String>,
        /// The project, instead of the repository around this directory
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// Most definitions to print
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models in use and what could serve one here
    List,
    /// Ask a model three small questions and tell what it can do
    #[command(
        after_help = "Examples:\n  lula models test ollama/qwen2.5-coder:7b\n  lula models test openai-compatible@http://127.0.0.1:8080/v1/my-model --json\n\nExit status: 0 when it answers, 1 when it does not, 6 when its key cannot be had."
    )]
    Test {
        /// PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Longest wait for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
    /// Tell how models did in the runs kept here: what was verified, and at what cost
    #[command(
        after_help = "Where several models are in use, runs prefer the one that did better at the kind of task, and write down why."
    )]
    Stats,
    /// Try a model and put it first among those in use
    #[command(
        after_help = "Example:\n  lula models use anthropic/claude-sonnet-4-5\n\nWrites models.use in your configuration file; a model that does not answer changes nothing."
    )]
    Use {
        /// PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Take it without asking it anything
        #[arg(long)]
        untried: bool,
        /// Longest wait for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
}

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Lessons are derived from the logs of this repository's runs. Coders see at most five, as untrusted\nnotes; one in ten is held back, so that it can be told whether they help."
)]
pub(crate) enum LessonsCommand {
    /// List them, those seen last first
    List {
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Show one, with what shows it and whether it helps
    Show {
        /// Its name, or the beginning of it
        id: String,
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Never show one again
    Forget {
        /// Its name, or the beginning of it
        id: String,
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuidelinesCommand {
    /// List guards and guidelines, and how many labels confidence was learned from
    List,
    /// Run the examples of a file of guidelines
    #[command(
        after_help = "Without a file, every file in force is tested, the built-in one too.\n\nExit status: 0 all examples hold, 1 some do not, 2 the file is wrong."
    )]
    Test {
        /// The file
        file: Option<PathBuf>,
    },
    /// Tell what a guideline says, how a run was rated, or what guards say about a command
    #[command(
        after_help = "Examples:\n  lula guidelines explain last\n  lula guidelines explain no-disabled-tests\n  lula guidelines explain -- git -c alias.p='push -f' p"
    )]
    Explain {
        /// The name of a guideline or of a run: its id, the end of it, or last
        #[arg(value_name = "WHAT", required_unless_present = "command")]
        what: Option<String>,
        /// A command and its arguments
        #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
        command: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Tell what the rules say about a command
    #[command(
        after_help = "Wrappers, quotes and shells are looked through; what is known only when it runs is asked about.\n\nExamples:\n  lula policy check -- git push origin main\n  lula policy check --shell 'cd x && git push -f'\n  lula policy check --write .github/workflows/ci.yml\n\nExit status: 0 allow, 3 ask, 1 deny."
    )]
    Check {
        /// Shell text, instead of a command with arguments
        #[arg(long, value_name = "TEXT", conflicts_with = "command")]
        shell: Option<String>,
        /// A path that is written; may be given more than once
        #[arg(long, value_name = "PATH")]
        write: Vec<String>,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["shell", "write"])]
        command: Vec<String>,
    },
    /// Run the examples of a rules file
    #[command(
        after_help = "Without a file, every rules file in force is tested, the built-in one too.\n\nExit status: 0 all examples hold, 1 some do not, 2 the file cannot be read."
    )]
    Test {
        /// The rules file
        file: Option<PathBuf>,
    },
    /// List every rule in force
    Show {
        /// Print the built-in file itself
        #[arg(long)]
        built_in: bool,
    },
    /// Tell what deserves a second look in a text: hidden characters, instructions, secrets
    #[command(
        after_help = "Findings are labels: they block nothing.\n\nExample:\n  git show | lula policy scan"
    )]
    Scan {
        /// The file to read; standard input when left out
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show a question with exactly the bytes that would be approved
    Show {
        /// Its id
        id: String,
    },
    /// List the keys that sign answers, make, rotate or retire one
    #[command(
        after_help = "Examples:\n  lula approvals keys\n  lula approvals keys add alice --role maintainer --file alice.key\n  lula approvals keys rotate\n  lula approvals keys retire k_0123456789abcdef"
    )]
    Keys {
        #[command(subcommand)]
        command: Option<KeysCommand>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key for somebody, and write it into a private file to hand to them
    Add {
        /// For whom, such as alice
        who: Principal,
        /// What they answer as; can be given several times
        #[arg(long = "role", value_name = "NAME", required = true)]
        roles: Vec<String>,
        /// The file, which must not exist
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Sign with a new key of your own from now on; the old ones count until they are retired
    Rotate,
    /// Let a key count for nothing, also for what it signed
    Retire {
        /// Its id, from `lula approvals keys`
        id: String,
    },
}

const ANSWER_HELP: &str = "\
The answer is signed with the key of the state directory and bound to the digest of the call, the
diff, the base tree and the policy: one changed byte makes it void. It can be used once.

Somebody else answers with a key that was made for them (`lula approvals keys add`), where the runner
listens on a port (its bearer key is taken from LULA_RUNNER_KEY):
  lula approve apr_01jd3x… --key alice.key --runner 10.0.0.5:7070

Exit status: 0 answered, 3 more people have to agree, 1 the answer does not count.";

#[derive(Debug, Args)]
pub(crate) struct AnswerFlags {
    /// Id of the question, from `lula approvals`, or the run that asks
    pub(crate) id: String,
    /// Do not ask again on the terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Answer with the key in this file, as whoever it was made for
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Ask the runner there: unix:PATH or HOST:PORT, instead of the state directory
    #[arg(long, value_name = "ADDRESS", requires = "key")]
    pub(crate) runner: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Find out whether the record was changed, and where
    #[command(
        after_help = "Examples:\n  lula audit verify\n  lula audit verify --bundle audit.jsonl --key $(cat seal.pub)\n\nExit status: 0 intact, 1 changed."
    )]
    Verify {
        /// An exported log, instead of the one in the state directory
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
        /// The public key you know, instead of the one beside the log
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
        /// An end of the log that you know, as SEQ:HASH
        #[arg(long, value_name = "SEQ:HASH", conflicts_with = "bundle")]
        head: Option<String>,
    },
    /// List what was done
    #[command(
        after_help = "Showing checks nothing: `lula audit verify` does.\n\nExample:\n  lula audit show --tool exec --last 20"
    )]
    Show {
        /// Only this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Only the newest
        #[arg(long, value_name = "COUNT")]
        last: Option<usize>,
    },
    /// Write the whole record into one file that can be checked alone
    Export {
        /// The file; standard output when left out
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every key with its value and the layer it comes from
    List,
    /// Print the value of a key
    #[command(after_help = "Example:\n  lula config get sandbox.timeout")]
    Get {
        /// Name of the key
        key: String,
    },
    /// Write a value into a configuration file
    #[command(
        after_help = "Examples:\n  lula config set sandbox.timeout 5m\n  lula config set --in repository sandbox.min_tier namespace"
    )]
    Set {
        /// Name of the key
        key: String,
        /// Its new value
        value: String,
        /// Which file
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Remove a key from a configuration file
    Unset {
        /// Name of the key
        key: String,
        /// Which file
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Show what each layer says about a key and which one won
    #[command(after_help = "Example:\n  lula config explain sandbox.min_tier")]
    Explain {
        /// Name of the key
        key: String,
    },
    /// Print the reference page of all keys
    Reference,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FileLayer {
    /// The machine's file
    System,
    /// Your file
    User,
    /// The file at the top of the repository
    Repository,
}

/// The whole command with a hidden flag for every configuration key.
pub(crate) fn command() -> clap::Command {
    with_flags(Cli::command(), |_| true)
}

/// Reads the command line.
pub(crate) fn read(arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    match read_exec(arguments) {
        Some(matches) => Ok(matches),
        None => command_for(arguments).try_get_matches_from(arguments),
    }
}

/// Reads `lula exec …` without making the other commands, which takes longer than reading. Whatever
/// is no plain use of it, help and mistakes included, is left to those who know all commands.
fn read_exec(arguments: &[OsString]) -> Option<ArgMatches> {
    if arguments.get(1)? != "exec" {
        return None;
    }
    let exec = ExecFlags::augment_args(clap::Command::new("exec"));
    let alone = OutputFlags::augment_args(clap::Command::new("lula")).subcommand(exec);
    with_flags(alone, |spec| is_named(spec, arguments))
        .try_get_matches_from(arguments)
        .ok()
}

/// The command with the flags of those sections of the configuration that an argument names. Each
/// flag is copied into every command, which takes longer than most commands have to wait for.
fn command_for(arguments: &[OsString]) -> clap::Command {
    with_flags(Cli::command(), |spec| is_named(spec, arguments))
}

fn is_named(spec: &lula_config::Spec, arguments: &[OsString]) -> bool {
    let section = spec.name.split('.').next().unwrap_or_default();
    let beginning = format!("--{section}-");
    let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
    texts.any(|text| text.starts_with(&beginning))
}

fn with_flags(
    command: clap::Command,
    wanted: impl Fn(&lula_config::Spec) -> bool,
) -> clap::Command {
    let flags = keys::all().filter(|spec| wanted(spec)).map(|spec| {
        Arg::new(spec.name)
            .long(spec.flag())
            .value_name("VALUE")
            .help(spec.summary())
            .global(true)
            .hide(true)
    });
    command.args(flags)
}

/// The settings given as flags.
pub(crate) fn settings(matches: &ArgMatches) -> Result<Vec<lula_config::Setting>, Failure> {
    // Global flags are handed down, so the innermost command has seen them all.
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let given = keys::all().filter_map(|spec| {
        // A flag that no argument named is not even there.
        let given = innermost.try_get_one::<String>(spec.name).ok().flatten();
        given.map(|text| variables::from_flag(spec, text))
    });
    Ok(given.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_key_is_a_flag_before_and_after_the_command() {
        for line in [
            ["lula", "--sandbox-timeout", "5s", "config", "list"],
            ["lula", "config", "list", "--sandbox-timeout", "5s"],
            ["lula", "config", "--sandbox-timeout", "5s", "list"],
        ] {
            let arguments = line.map(OsString::from);
            for command in [command(), command_for(&arguments)] {
                let matches = command.try_get_matches_from(line).unwrap();
                let settings = settings(&matches).unwrap();
                assert_eq!(settings.len(), 1, "{line:?}");
                assert_eq!(settings[0].value.to_string(), "5s");
            }
        }
    }

    #[test]
    fn exec_alone_reads_what_the_whole_command_reads() {
        for line in [
            "lula exec true",
            "lula exec --json -- ls -l --json",
            "lula exec -v --profile strict --tier namespace --write none pytest -q",
            "lula exec --sandbox-timeout 5s --timeout 90s --receipt r --workspace w -- a -- b",
            "lula exec --policy p.toml --on last x",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let read = |matches: &ArgMatches| {
                let cli = <Cli as clap::FromArgMatches>::from_arg_matches(matches).unwrap();
                format!("{cli:?} {:?}", settings(matches).unwrap())
            };
            let whole = command().try_get_matches_from(&arguments).ok();
            let alone = read_exec(&arguments);
            assert_eq!(alone.as_ref().map(read), whole.as_ref().map(read), "{line}");
        }
        for line in [
            "lula exec",
            "lula exec --help",
            "lula exec -V",
            "lula exce x",
            "lula",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(read_exec(&arguments).is_none(), "{line}");
        }
    }

    #[test]
    fn every_command_has_a_description() {
        fn check(command: &clap::Command) {
            for inner in command.get_subcommands() {
                assert!(inner.get_about().is_some(), "{}", inner.get_name());
                check(inner);
            }
        }
        check(&command());
    }
}
