//! Who may do what: `lula policy`, `lula approvals` and the answers to them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lula_protocol::Principal;

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

pub(super) const ANSWER_HELP: &str = "\
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
