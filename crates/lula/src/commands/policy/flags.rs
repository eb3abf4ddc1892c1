//! The arguments of `lula policy`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a command, shell text or written path against the rules
    #[command(
        after_help = "Wrappers, quotes and nested shells are resolved; what is only known at run time is answered with ask.\n\nExamples:\n  lula policy check -- git push origin main\n  lula policy check --shell 'cd x && git push -f'\n  lula policy check --write .github/workflows/ci.yml\n\nExit status: 0 allow, 3 ask, 1 deny."
    )]
    Check {
        /// Shell text to check, instead of a command with arguments
        #[arg(long, value_name = "TEXT", conflicts_with = "command")]
        shell: Option<String>,
        /// Path that the command writes; repeatable
        #[arg(long, value_name = "PATH")]
        write: Vec<String>,
        /// Command and its arguments
        #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["shell", "write"])]
        command: Vec<String>,
    },
    /// Run the examples in a rules file
    #[command(
        after_help = "Without a file, tests every rules file in force, including the built-in one.\n\nExit status: 0 all examples hold, 1 some do not, 2 the file cannot be read."
    )]
    Test {
        /// Rules file to test
        file: Option<PathBuf>,
    },
    /// List every rule in force
    Show {
        /// Print the built-in rules file
        #[arg(long)]
        built_in: bool,
    },
    /// Scan a text for hidden characters, instructions to models and secrets
    #[command(
        after_help = "Findings are labels; they block nothing.\n\nExample:\n  git show | lula policy scan"
    )]
    Scan {
        /// File to scan; without it, standard input
        file: Option<PathBuf>,
    },
}
